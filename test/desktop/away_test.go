//go:build rig

package desktop

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/visitor"
)

const maya = "maya@example.net"

// plane is a control plane of its own, as an operator runs it: control plane and
// relay in one process.
type plane struct {
	s       *session
	data    string
	mails   string
	listen  string // host:port, the same for every start
	authURL string
	ca      string // PEM
	cmd     *exec.Cmd
}

func (s *session) startPlane() *plane {
	s.t.Helper()
	c := &plane{s: s, data: filepath.Join(s.dir, "plane"), mails: filepath.Join(s.dir, "mails"), listen: freePort(s.t)}
	c.start()
	c.tool("account", "add", maya)
	c.ca = c.tool("ca")
	return c
}

func (c *plane) program() string {
	return filepath.Join(filepath.Dir(cli(c.s.t)), "porchlight-control")
}

// tool runs one of the operator's commands.
func (c *plane) tool(args ...string) string {
	c.s.t.Helper()
	return c.s.mustTool(c.program(), append(args, "--data", c.data)...)
}

func (c *plane) start() {
	c.s.t.Helper()
	c.cmd = exec.Command(c.program(), "serve", "--data", c.data, "--domain", "porch.localhost",
		"--listen", c.listen, "--outbox", c.mails, "--log-level", "warn", "--grace", "1s")
	c.s.run(c.cmd, "plane")
	c.s.eventually("the control plane serves", func() error {
		said, err := os.ReadFile(filepath.Join(c.s.dir, "plane.log"))
		found := regexp.MustCompile(`control plane at (\S+), listening on`).FindSubmatch(said)
		if found == nil {
			return errors.Join(err, fmt.Errorf("it says %q", said))
		}
		c.authURL = string(found[1])
		return nil
	})
}

// stop ends it as an operator does.
func (c *plane) stop() {
	c.s.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.s.t.Fatal(err)
	}
	c.s.eventually("the control plane is down", func() error {
		if conn, err := (&http.Client{Timeout: time.Second}).Get("http://" + c.listen); err == nil {
			conn.Body.Close()
			return errors.New("it answers")
		} else if !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		return nil
	})
}

// mailed waits for a mail to somebody that is not in known, and returns its
// first link.
func (c *plane) mailed(to string, known []string) func(context.Context) (string, error) {
	return func(context.Context) (link string, err error) {
		c.s.eventually("a mail to "+to, func() error {
			for _, file := range c.all() {
				raw, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				if found := regexp.MustCompile(`https://\S+`).Find(raw); found != nil && strings.Contains(string(raw), to) && !slices.Contains(known, file) {
					link = string(found)
					return nil
				}
			}
			return errors.New("none so far")
		})
		return link, nil
	}
}

func (c *plane) all() []string {
	files, _ := filepath.Glob(filepath.Join(c.mails, "*"))
	slices.Reverse(files) // newest first
	return files
}

// browser is somebody's who trusts the control plane's authority, and the
// computer's once that has one.
func (c *plane) browser(p *program) *visitor.Visitor {
	c.s.t.Helper()
	roots := x509.NewCertPool()
	own, _ := os.ReadFile(filepath.Join(p.data, "connected-ca/root.pem"))
	if !roots.AppendCertsFromPEM([]byte(c.ca)) || own != nil && !roots.AppendCertsFromPEM(own) {
		c.s.t.Fatal("an authority's certificate cannot be read")
	}
	v := visitor.New(roots)
	c.s.t.Cleanup(v.Close)
	return v
}

// connect connects the computer as the owner does: a code, confirmed in a
// browser.
func (c *plane) connect(p *program, name string) {
	t := c.s.t
	t.Helper()
	waiting, err := p.ownerTier().Connect(t.Context(), agentapi.ConnectRequest{URL: c.authURL, CA: c.ca})
	if err != nil {
		t.Fatal(err)
	}
	v := c.browser(p)
	page, err := v.SignIn(t.Context(), waiting.VerificationURLComplete, maya, c.mailed(maya, c.all()))
	if err == nil {
		page, err = v.Submit(t.Context(), page, "code", map[string]string{"code": waiting.UserCode})
	}
	if err == nil {
		page, err = v.Submit(t.Context(), page, "name", map[string]string{"name": name, "decision": "allow"})
	}
	if err != nil || page.Status != http.StatusOK {
		t.Fatalf("confirming: %+v, %v", page, err)
	}
	c.s.eventually("the computer is connected", func() error {
		account, err := p.ownerTier().Account(t.Context())
		if err == nil && (account.Local || !account.Connected || account.Name != name) {
			err = fmt.Errorf("it is %+v", account)
		}
		return err
	})
}

// member invites somebody to apps and has them accept.
func (c *plane) member(p *program, email string, apps ...string) *visitor.Visitor {
	t := c.s.t
	t.Helper()
	before := c.all()
	if _, err := p.ownerTier().Invite(t.Context(), agentapi.InviteRequest{Email: email, Apps: apps}); err != nil {
		t.Fatal(err)
	}
	link, err := c.mailed(email, before)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := c.browser(p)
	page, err := v.Open(t.Context(), link)
	if err == nil {
		page, err = v.Submit(t.Context(), page, "", nil)
	}
	if err != nil || page.Status != http.StatusOK {
		t.Fatalf("the invitation: %+v, %v", page, err)
	}
	return v
}

// A control plane that is away: tray and window say so, what the owner decides
// holds at once and from a visitor's first request when it is back.
func TestControlPlaneIsAway(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	control := s.startPlane()
	p := s.launchDriven()
	control.connect(p.program, "cellar")
	notes := p.approved("notes", "Notes", webApp(t, "notes"))
	wiki := p.approved("wiki", "Wiki", webApp(t, "wiki"))
	bob := control.member(p.program, guest, "Notes", "Wiki")
	carla := control.member(p.program, "carla@example.com", "Notes")
	for v, address := range map[*visitor.Visitor]string{bob: wiki, carla: notes} {
		p.answers(v, address, http.StatusOK)
	}
	p.answers(bob, notes, http.StatusOK)

	control.stop()
	p.trayShows("Reconnecting…", true)
	p.trayShows("The control plane does not answer.", true)
	p.openWindow()
	p.eventually("the window says so", func() error {
		var said string
		err := webDriver("POST", p.session+"/execute/sync", map[string]any{"script": `return document.querySelector('main').innerText`, "args": []string{}}, &said)
		if err == nil && (!strings.Contains(said, "The control plane does not answer. Everyone keeps the access they have until ") || !strings.Contains(said, "Inviting waits.")) {
			err = errors.New(said)
		}
		return err
	})
	p.shot("away")

	// Every decision is the owner's all the same; the loopback API tells.
	photosPort := webApp(t, "photos")
	p.publish("photos", "Photos", photosPort)
	p.enter(p.named("button", "Approve"))
	p.is("photos", "live")
	p.trayClick("Notes > Pause")
	p.trayShows("Notes: paused > Resume", true)
	p.trayClick("Wiki > Revoke > Yes, revoke Wiki")
	p.is("wiki", "")
	p.view("People")
	p.shot("away-people")
	p.pressButton("Apps for carla@example.com")
	p.pressButton("Remove carla@example.com")
	p.press(p.named("dialog button", "Remove"))
	p.named(".toast button", "Undo")
	p.shot("away-removed")
	status := func(email string) (status string) {
		people, err := p.ownerTier().People(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range people.Members {
			if one.Email == email {
				status = one.Status
			}
		}
		return status
	}
	if got := status("carla@example.com"); got != agentapi.PersonRevoked {
		t.Errorf("with nobody to tell she is %s", got)
	}

	control.start()
	back := time.Now()
	// The first answers are the ones that count: nobody gets in for a moment.
	let := func(v *visitor.Visitor, address string) (status int) {
		page, err := v.Open(t.Context(), address)
		if err != nil {
			return 0 // the computer is not back yet
		}
		if page.Status == http.StatusOK {
			t.Errorf("%s let somebody in: %s", address, page.Body)
		}
		return page.Status
	}
	for what, refused := range map[string]func() bool{
		"a paused app":     func() bool { return let(bob, notes) == http.StatusServiceUnavailable },
		"a revoked app":    func() bool { return let(bob, wiki) == http.StatusNotFound },
		"a removed person": func() bool { return let(carla, notes) >= http.StatusForbidden },
	} {
		p.eventually(what+" is refused by the computer itself", func() error {
			if !refused() {
				return errors.New("not yet")
			}
			return nil
		})
	}
	t.Logf("control plane back to the last refusal: %d ms", time.Since(back).Milliseconds())
	p.trayShows("The control plane does not answer.", false)
	p.trayShows("On. Nobody here now", true)
	p.shot("back")
	p.trayClick("Notes: paused > Resume")
	p.answers(bob, notes, http.StatusOK)
	if _, err := p.ownerTier().Grant(t.Context(), agentapi.GrantRequest{AccountID: p.accountOf(guest), App: "Photos", Granted: true}); err != nil {
		t.Fatal(err)
	}
	p.answers(bob, p.address("photos"), http.StatusOK) // approved while it was away
	p.answers(carla, notes, http.StatusForbidden)
}

// accountOf is the account id of somebody on this computer's list.
func (p *program) accountOf(email string) (id string) {
	p.t.Helper()
	people, err := p.ownerTier().People(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, one := range people.Members {
		if one.Email == email {
			id = one.AccountID
		}
	}
	return id
}

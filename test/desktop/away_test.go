//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

const maya = "maya@example.com"

// plane is a control plane of its own, as an operator runs it: control plane and
// relay in one process.
type plane struct {
	*rig.Node
	s      *session
	listen string // host:port, the same for every start
	domain string
}

func (s *session) startPlane() *plane {
	s.t.Helper()
	c := &plane{s: s, listen: programs.FreeAddress(s.t), domain: "porch.localhost"}
	if forDocuments() != "" { // where names and ports are free: see screenshots.sh
		c.listen, c.domain = "127.0.0.1:443", "porch.example"
	}
	c.start()
	programs.Must(s.t, c.Run(nil, "account", "add", maya))
	return c
}

func (c *plane) mails() string { return filepath.Join(c.s.dir, "mails") }

func (c *plane) start() {
	c.s.t.Helper()
	r := rig.Rig{Bin: filepath.Dir(cli(c.s.t)), Env: c.s.env, Begin: func(cmd *exec.Cmd) (*programs.Process, error) { return c.s.run(cmd), nil }}
	var err error
	c.Node, err = r.Node(c.s.t.Context(), filepath.Join(c.s.dir, "plane"), "--listen", c.listen, "--domain", c.domain, "--outbox", c.mails())
	programs.Must(c.s.t, err)
}

// connect connects the computer as the owner does: a code, confirmed in a
// browser.
func (c *plane) connect(p *program, name string) {
	c.s.t.Helper()
	c.confirm(p, name, c.code(p))
}

// code asks for one.
func (c *plane) code(p *program) agentapi.Connecting {
	c.s.t.Helper()
	authority := programs.Got(os.ReadFile(rig.Authority(c.Data)))(c.s.t)
	return programs.Got(p.ownerTier().Connect(c.s.t.Context(), agentapi.ConnectRequest{URL: c.AuthURL, CA: string(authority)}))(c.s.t)
}

// confirm has the code confirmed and waits for what comes of it.
func (c *plane) confirm(p *program, name string, waiting agentapi.Connecting) {
	t := c.s.t
	t.Helper()
	p.plane, p.mails = c, rig.MailsIn(c.mails())
	answers := map[string]string{"name": name, "decision": "allow"}
	page, err := p.guest().Confirm(t.Context(), waiting.VerificationURLComplete, waiting.UserCode, maya, answers, p.mails)
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
	bob := p.member(guest, "Notes", "Wiki")
	carla := p.member("carla@example.com", "Notes")
	for v, address := range map[*visitor.Visitor]string{bob: wiki, carla: notes} {
		p.answers(v, address, http.StatusOK)
	}
	p.answers(bob, notes, http.StatusOK)

	control.Stop()
	p.trayShows("Reconnecting…", true)
	p.trayShows(strings.TrimPrefix(control.AuthURL, "https://")+" cannot be reached.", true)
	p.openWindow()
	p.eventually("the window says so", func() error {
		var said string
		err := webDriver("POST", p.session+"/execute/sync", map[string]any{"script": `return document.querySelector('main').innerText`, "args": []string{}}, &said)
		if err == nil && (!strings.Contains(said, "Everyone keeps the access they have until ") || !strings.Contains(said, "Inviting waits.")) {
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
	p.pressButton("Remove carla@example.com")
	p.named(".toast button", "Undo")
	p.shot("away-removed")
	if got := p.person("carla@example.com").Status; got != agentapi.PersonRemoved {
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
	p.trayShows("The server does not answer.", false)
	p.trayShows("On. Nobody here now", true)
	p.shot("back")
	p.trayClick("Notes: paused > Resume")
	p.answers(bob, notes, http.StatusOK)
	programs.Got(p.ownerTier().SetAccess(t.Context(), agentapi.AccessRequest{AccountID: p.person(guest).AccountID, App: "Photos", Granted: true}))(t)
	p.answers(bob, p.address("photos"), http.StatusOK) // approved while it was away
	p.answers(carla, notes, http.StatusForbidden)
}

// person is somebody on this computer's list.
func (p *program) person(email string) (found agentapi.Person) {
	p.t.Helper()
	p.eventually(email+" is among the people", func() error { // a click may be on its way
		people, err := p.ownerTier().People(p.t.Context())
		if err != nil {
			return err
		}
		for _, one := range people.Members {
			if one.Email == email {
				found = one
				return nil
			}
		}
		return fmt.Errorf("there are %+v", people.Members)
	})
	return found
}

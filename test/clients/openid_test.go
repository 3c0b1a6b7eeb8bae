//go:build clients

package clients

import (
	"encoding/json"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

// op is an OpenID provider that nobody here wrote, in a process of its own, which makes new
// keys at each start.
type op struct {
	name, issuer string
	login        string // the field of its page for who signs in
	start        func() *programs.Process
	running      *programs.Process
	logsOut      bool // it tells who signed out
}

// member is somebody at both providers, under the name they type there.
type member struct {
	email    string
	verified bool
}

// The ways of a person by a provider, at two that nobody here wrote: oidc-provider of npm, and
// the example server of zitadel/oidc. A guest comes by one to an app on a computer behind the
// relay; who is not verified there, or is a second account of the same address, proves it by a
// mail, and is known from then on; new keys keep nobody out; and who signs out there is out of
// the app in one poll.
func TestOpenIDProviders(t *testing.T) {
	t.Parallel()
	members := map[string]member{
		"bob": {"bob@club.example", true}, "dora": {"dora@club.example", false}, "bob2": {"bob@club.example", true},
		"maya": {"bob@elsewhere.example", true},
	}
	h, providers := openIDHouse(t, members)
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			b := h.newBrowser(t)
			if page := p.comes(t, b, h.app, "bob"); !strings.Contains(page.Body, "Email=bob@club.example") {
				t.Fatalf("bob is at %s: %s", page.URL, page.Body)
			}
			for _, who := range []string{"dora", "bob2", "maya"} {
				other := h.newBrowser(t)
				page := p.comes(t, other, h.app, who)
				if !strings.HasSuffix(page.URL.Path, "/prove") || page.Status != http.StatusOK {
					t.Errorf("%s is at %s: %s", who, page.URL, page.Body)
				}
				if who != "dora" {
					continue
				}
				programs.Got(other.Submit(t.Context(), page, "email", map[string]string{"email": "dora@club.example"}))(t)
				page = programs.Got(other.Open(t.Context(), programs.Got(h.mails.Link(t.Context(), "dora@club.example"))(t)))(t)
				programs.Got(other.Submit(t.Context(), page, "token", nil))(t)
				if page = programs.Got(other.Open(t.Context(), h.app))(t); !strings.Contains(page.Body, "Email=dora@club.example") {
					t.Errorf("dora is at %s: %s", page.URL, page.Body)
				}
			}
			p.running.Stop()
			p.running = p.start()
			// Keys are fetched every five seconds at most, and a network has so many tries.
			page := p.comes(t, h.newBrowser(t), h.app, "dora")
			for tries := 0; !strings.Contains(page.Body, "Email=dora@club.example"); tries++ {
				if !strings.Contains(page.Body, "signed with a key that it does not show") || tries == 20 {
					t.Fatalf("by new keys dora is at %s: %s", page.URL, page.Body)
				}
				time.Sleep(time.Second)
				page = p.comes(t, h.newBrowser(t), h.app, "dora")
			}
			if !p.logsOut {
				return
			}
			b = h.newBrowser(t) // the former process took its sessions with it
			p.comes(t, b, h.app, "bob")
			page = programs.Got(b.Open(t.Context(), p.issuer+"/session/end"))(t)
			programs.Got(b.Submit(t.Context(), page, "xsrf", map[string]string{"logout": "yes"}))(t)
			programs.Eventually(t, "bob is signed out at the app", func() bool {
				page, err := b.Open(t.Context(), h.app) // what is under way at that moment is cut off
				return err == nil && strings.HasPrefix(page.URL.String(), h.account.AuthURL+"/signin")
			})
		})
	}
}

// openIDHouse is a computer with an app, open to bob and dora, connected to a control plane
// with the two providers.
func openIDHouse(t *testing.T, members map[string]member) (*house, []*op) {
	t.Helper()
	dir := t.TempDir()
	r := rig.In(t, binDir(t))
	r.Env = rig.Environ(filepath.Join(dir, "config"))
	listen, flags := programs.FreeAddress(t), []string{"--outbox", filepath.Join(dir, "mails")}
	_, port, _ := strings.Cut(listen, ":")
	at := func(name, path string) string {
		return "https://control.porch.localhost:" + port + "/signin/with/" + name + path
	}
	providers := []*op{npmProvider(t, dir, at), zitadelServer(t, dir, at)}
	programs.Must(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret\n"), 0o600))
	npm, zitadel := map[string]any{}, map[string]any{}
	for name, m := range members {
		npm[name] = map[string]any{"email": m.email, "email_verified": m.verified}
		zitadel[name] = map[string]any{"ID": name, "Username": name, "Password": "x", "Email": m.email, "EmailVerified": m.verified}
	}
	write := func(name string, v any) string {
		path := filepath.Join(dir, name+".json")
		programs.Must(t, os.WriteFile(path, programs.Got(json.Marshal(v))(t), 0o600))
		return path
	}
	write("npm-users", npm)
	write("zitadel-users", zitadel)
	for _, p := range providers {
		p.running = p.start() // who does not answer at first is asked again after ten seconds
		flags = append(flags, "--oidc", write(p.name, map[string]any{
			"name": p.name, "label": "The " + p.name, "issuer": p.issuer, "clientId": "web", "clientSecretFile": "secret",
			"domains": []string{"club.example"}, "private": true,
		}))
	}
	node := programs.Got(r.Node(t.Context(), filepath.Join(dir, "control"), append(flags, "--listen", listen)...))(t)
	programs.Got(node.Output("account", "add", "maya@example.net"))(t)
	h := &house{agent: programs.Got(r.Computer(t.Context(), filepath.Join(dir, "attic"), "--local"))(t), node: node, mails: rig.MailsIn(filepath.Join(dir, "mails"))}
	h.connect(t, r, "attic")()
	h.porchlight(t, "publish", "notes", "--label", "Notes", "--port", strconv.Itoa(portOf(startApp(t))))
	h.porchlight(t, "approve", "notes")
	h.app = "https://notes." + h.account.Host
	h.porchlight(t, "people", "invite", "bob@club.example", "dora@club.example", "--app", "Notes")
	for _, email := range []string{"bob@club.example", "dora@club.example"} {
		programs.Must(t, h.newBrowser(t).Accept(t.Context(), programs.Got(h.mails.Link(t.Context(), email))(t)))
	}
	return h, providers
}

func (h *house) newBrowser(t *testing.T) *visitor.Visitor {
	b := visitor.New(h.roots)
	t.Cleanup(b.Close)
	return b
}

func providerPort(t *testing.T) string {
	port, giveBack, err := programs.Port()
	programs.Must(t, err)
	t.Cleanup(giveBack)
	return strconv.Itoa(port)
}

func npmProvider(t *testing.T, dir string, at func(name, path string) string) *op {
	port := providerPort(t)
	p := &op{name: "npm", issuer: "http://localhost:" + port, login: "login", logsOut: true}
	p.start = func() *programs.Process {
		cmd := exec.Command("node", "--import", "./node/localhost.mjs", "node/provider.mjs", port, p.issuer, at("npm", "/back"), at("npm", "/logout"), filepath.Join(dir, "npm-users.json"))
		cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+rig.Authority(filepath.Join(dir, "control")))
		process := programs.Begin(t, cmd)
		programs.Got(process.Says(t.Context(), "(listening)"))(t)
		return process
	}
	return p
}

func zitadelServer(t *testing.T, dir string, at func(name, path string) string) *op {
	port := providerPort(t)
	binary := filepath.Join(dir, "zitadel-server")
	build := exec.Command("go", "build", "-o", binary, "github.com/zitadel/oidc/v3/example/server")
	build.Dir = "zitadel"
	programs.Got(programs.Output(build))(t)
	p := &op{name: "zitadel", issuer: "http://localhost:" + port + "/", login: "username"}
	p.start = func() *programs.Process {
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), "PORT="+port, "USERS_FILE="+filepath.Join(dir, "zitadel-users.json"), "REDIRECT_URI="+at("zitadel", "/back"))
		process := programs.Begin(t, cmd)
		programs.Got(process.Logs(t.Context(), "(server listening)"))(t)
		return process
	}
	return p
}

var withProvider = regexp.MustCompile(`href="(/signin/with/[^"]+)"`)

// comes is somebody on their way to an address, by the provider, in a browser that is not signed
// in; it ends where they are led.
func (p *op) comes(t *testing.T, b *visitor.Visitor, address, who string) *visitor.Page {
	t.Helper()
	page := programs.Got(b.Open(t.Context(), address))(t)
	for _, m := range withProvider.FindAllStringSubmatch(page.Body, -1) {
		if to := html.UnescapeString(m[1]); strings.HasPrefix(to, "/signin/with/"+p.name+"?") {
			page = programs.Got(b.Open(t.Context(), programs.Got(page.URL.Parse(to))(t).String()))(t)
			break
		}
	}
	page = programs.Got(b.Submit(t.Context(), page, p.login, map[string]string{p.login: who, "password": "x"}))(t)
	if strings.HasPrefix(page.URL.String(), p.issuer) { // it asks whether we may know
		page = programs.Got(b.Submit(t.Context(), page, "", nil))(t)
	}
	return page
}

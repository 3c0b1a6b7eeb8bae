// Package connect tests a computer that is connected to a control plane
// elsewhere: real programs, real mail files, the confirming page driven over
// HTTP, visitors through the relay.
package connect

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

const owner = "maya@example.net"

var binaries string

func TestMain(m *testing.M) {
	use := func(dir string) { binaries = dir }
	os.Exit(programs.Main(m, use, "porchlight/agent/cmd/porchlight", "porchlight/control/cmd/porchlight-control"))
}

// world is a control plane, a computer with an app on it, and somebody with a
// browser.
type world struct {
	*rig.Rig
	t       *testing.T
	dir     string
	control *rig.Node
	https   string // where the computer listens while it is on its own
	caFile  string
	flags   []string // more, of the control plane
	roots   *x509.CertPool
	mails   *rig.Mails
	app     *httptest.Server

	mu     sync.Mutex
	seen   http.Header // of the last visitor's request that reached the app
	probed []string    // hosts it was asked by, to see how it does
}

func newWorld(t *testing.T, flags ...string) *world {
	// Ports that are left and taken again.
	w := &world{t: t, Rig: rig.In(t, binaries), dir: t.TempDir(), https: programs.FreeAddress(t), flags: flags}
	w.Env = rig.Environ(w.path("config"))
	w.startControl(programs.FreeAddress(t))
	w.mails = rig.MailsIn(w.path("mails"))
	programs.Got(w.control.Output("account", "add", owner))(t)
	pem, err := w.control.Output("ca")
	w.caFile = w.path("authority.pem")
	programs.Must(t, err, os.WriteFile(w.caFile, []byte(pem), 0o600))
	w.roots = programs.Got(rig.Roots(w.caFile))(t)
	w.app = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		if r.UserAgent() == "Porchlight-probe" {
			w.probed = append(w.probed, r.Host)
		} else {
			w.seen = r.Header.Clone()
		}
		w.mu.Unlock()
		fmt.Fprintf(rw, "notes of %s", r.Header.Get("X-Service-Email"))
	}))
	t.Cleanup(w.app.Close)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) startControl(listen string, mail ...string) {
	w.t.Helper()
	if mail == nil {
		mail = []string{"--outbox", w.path("mails")}
	}
	w.control = programs.Got(w.Node(w.t.Context(), w.path("control"), append(append(mail, "--listen", listen), w.flags...)...))(w.t)
}

// startAgent runs the agent on the computer's data directory.
func (w *world) startAgent(args ...string) *programs.Process {
	w.t.Helper()
	c := programs.Got(w.Computer(w.t.Context(), w.path("data"), append(args, "--https", w.https)...))(w.t)
	return c.Process
}

// begin runs a command of the owner's.
func (w *world) begin(args ...string) *programs.Process {
	w.t.Helper()
	return programs.Got(w.Begin(w.Command("porchlight", append(args, "--data", w.path("data"))...)))(w.t)
}

// run runs one to its end.
func (w *world) run(args ...string) (code int, out, errOut string) {
	w.t.Helper()
	p := w.begin(args...)
	return p.Wait(), p.Stdout(), p.Stderr()
}

func (w *world) porchlight(args ...string) string {
	w.t.Helper()
	code, out, errOut := w.run(args...)
	if code != 0 {
		w.t.Fatalf("%s: exit %d\n%s", strings.Join(args, " "), code, errOut)
	}
	return out
}

func (w *world) account() (a agentapi.Account) {
	w.t.Helper()
	w.decode(w.porchlight("account", "--json"), &a)
	return a
}

func (w *world) decode(text string, into any) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		w.t.Fatalf("%q: %v", text, err)
	}
}

func (w *world) publish() {
	w.t.Helper()
	w.porchlight("publish", "notes", "--label", "Notes", "--port", w.app.URL[strings.LastIndexByte(w.app.URL, ':')+1:])
}

// beginConnect runs `porchlight connect` until it shows what to confirm.
func (w *world) beginConnect(args ...string) (command *programs.Process, waiting agentapi.Connecting) {
	w.t.Helper()
	command = w.begin(append([]string{"connect", w.control.AuthURL, "--ca", w.caFile, "--json"}, args...)...)
	said := programs.Got(command.Says(w.t.Context(), `(?s)^(\{.*?\n\})`))(w.t)
	w.decode(said[1], &waiting)
	return command, waiting
}

// connect runs `porchlight connect` and confirms it in a browser.
func (w *world) connect(name string, args ...string) (account agentapi.Account) {
	w.t.Helper()
	command, waiting := w.beginConnect(args...)
	page := w.confirm(waiting, name, "allow")
	if page.Status != http.StatusOK || !strings.Contains(page.Body, "Connected") {
		w.t.Fatalf("the confirming page answered %d at %s:\n%s", page.Status, page.URL, page.Body)
	}
	if code := command.Wait(); code != 0 {
		w.t.Fatalf("connect ended with %d:\n%s", code, command.Stderr())
	}
	d := json.NewDecoder(strings.NewReader(command.Stdout()))
	programs.Must(w.t, d.Decode(&waiting), d.Decode(&account))
	return account
}

// confirm does what the owner does in a browser; decision is "allow" or "deny".
func (w *world) confirm(waiting agentapi.Connecting, name, decision string) *visitor.Page {
	w.t.Helper()
	browser := visitor.New(w.roots)
	defer browser.Close()
	answers := map[string]string{"name": name, "decision": decision}
	page, err := browser.Confirm(w.t.Context(), waiting.VerificationURLComplete, waiting.UserCode, owner, answers, w.mails)
	programs.Must(w.t, err)
	if strings.Contains(page.Body, "Replace it") {
		page = programs.Got(browser.Submit(w.t.Context(), page, "replace", map[string]string{"decision": "allow"}))(w.t)
	}
	return page
}

// trusting is the control plane's authority and the computer's own.
func (w *world) trusting() *x509.CertPool {
	w.t.Helper()
	return programs.Got(rig.Roots(w.caFile, rig.Own(w.path("data"))))(w.t)
}

// visit opens an address as somebody who is not signed in, and signs in as the
// owner.
func (w *world) visit(address string) *visitor.Page {
	w.t.Helper()
	browser := visitor.New(w.trusting())
	defer browser.Close()
	return programs.Got(browser.SignIn(w.t.Context(), address, owner, w.mails))(w.t)
}

// ask sends one request with a device credential.
func (w *world) ask(path, credential string) int {
	w.t.Helper()
	browser := visitor.New(w.roots)
	defer browser.Close()
	req := programs.Got(http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.control.AuthURL+path, nil))(w.t)
	req.Header.Set("Authorization", "Bearer "+credential)
	req.Header.Set(controlapi.HeaderProtocol, controlapi.Protocol)
	resp := programs.Got(browser.Do(req))(w.t)
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// credential is the device credential the computer keeps, or empty.
func (w *world) credential() string {
	w.t.Helper()
	files, _ := filepath.Glob(w.path("config/porchlight/device/*.secret"))
	if len(files) == 0 {
		return ""
	}
	raw, err := os.ReadFile(files[0])
	if err != nil || len(files) > 1 {
		w.t.Fatal(files, err)
	}
	return strings.TrimSpace(string(raw))
}

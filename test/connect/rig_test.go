// Package connect tests a computer that is connected to a control plane
// elsewhere: real programs, real mail files, the confirming page driven over
// HTTP, visitors through the relay.
package connect

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

// process is a program of the test's.
type process struct {
	*programs.Process
	t *testing.T
}

func begin(t *testing.T, env []string, program string, args ...string) process {
	t.Helper()
	cmd := exec.Command(filepath.Join(binaries, program), args...)
	cmd.Env = env
	return process{programs.Begin(t, cmd), t}
}

// says waits until the process has printed what the pattern matches.
func (p process) says(pattern string) []string {
	p.t.Helper()
	found, err := p.Says(p.t.Context(), pattern)
	programs.Must(p.t, err)
	return found
}

// world is a control plane, a computer with an app on it, and somebody with a
// browser.
type world struct {
	t       *testing.T
	dir     string
	env     []string
	control process
	authURL string
	listen  string
	https   string // where the computer listens while it is on its own
	caFile  string
	roots   *x509.CertPool
	app     *httptest.Server

	mu     sync.Mutex
	seen   http.Header // of the last visitor's request that reached the app
	probed []string    // hosts it was asked by, to see how it does
}

func newWorld(t *testing.T) *world {
	// Ports that are left and taken again.
	w := &world{t: t, dir: t.TempDir(), https: programs.FreeAddress(t)}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "PORCHLIGHT_") && !slices.Contains([]string{"XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}, name) {
			w.env = append(w.env, v)
		}
	}
	w.env = append(w.env, "XDG_CONFIG_HOME="+filepath.Join(w.dir, "config"))
	w.startControl(programs.FreeAddress(t))
	w.ok("porchlight-control", "account", "add", owner, "--data", w.path("control"))
	w.caFile = w.path("authority.pem")
	pem := w.ok("porchlight-control", "ca", "--data", w.path("control"))
	programs.Must(t, os.WriteFile(w.caFile, []byte(pem), 0o600))
	w.roots = x509.NewCertPool()
	w.roots.AppendCertsFromPEM([]byte(pem))
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
	w.control = begin(w.t, w.env, "porchlight-control", append([]string{"serve", "--data", w.path("control"), "--domain", "porch.localhost",
		"--listen", listen, "--log-level", "warn", "--grace", "1s"}, mail...)...)
	found := w.control.says(`control plane at (\S+), listening on (\S+)`)
	w.authURL, w.listen = found[1], found[2]
}

// startAgent runs the agent on the computer's data directory.
func (w *world) startAgent(args ...string) process {
	w.t.Helper()
	p := begin(w.t, w.env, "porchlight", append([]string{"agent", "--data", w.path("data"), "--api", "127.0.0.1:0", "--https", w.https}, args...)...)
	p.says("Stop with Ctrl-C")
	return p
}

// run runs a command to its end.
func (w *world) run(program string, args ...string) (code int, out, errOut string) {
	w.t.Helper()
	p := begin(w.t, w.env, program, args...)
	return p.Wait(), p.Stdout(), p.Stderr()
}

func (w *world) ok(program string, args ...string) string {
	w.t.Helper()
	code, out, errOut := w.run(program, args...)
	if code != 0 {
		w.t.Fatalf("%s %s: exit %d\n%s", program, strings.Join(args, " "), code, errOut)
	}
	return out
}

func (w *world) porchlight(args ...string) string {
	w.t.Helper()
	return w.ok("porchlight", append(args, "--data", w.path("data"))...)
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

// mailed waits for the next mail there is and returns its link.
func (w *world) mailed() func(context.Context) (string, error) {
	mails := rig.MailsIn(w.path("mails"))
	return func(ctx context.Context) (string, error) { return mails.Link(ctx, "") }
}

// connect runs `porchlight connect` and confirms it in a browser.
func (w *world) connect(name string, args ...string) agentapi.Account {
	w.t.Helper()
	command := begin(w.t, w.env, "porchlight", append([]string{"connect", w.authURL, "--ca", w.caFile, "--json", "--data", w.path("data")}, args...)...)
	var waiting agentapi.Connecting
	w.decode(command.says(`(?s)^(\{.*?\n\})`)[1], &waiting)
	page := w.confirm(waiting, name, "allow")
	if page.Status != http.StatusOK || !strings.Contains(page.Body, "Connected") {
		w.t.Fatalf("the confirming page answered %d at %s:\n%s", page.Status, page.URL, page.Body)
	}
	if code := command.Wait(); code != 0 {
		w.t.Fatalf("connect ended with %d:\n%s", code, command.Stderr())
	}
	var account agentapi.Account
	d := json.NewDecoder(strings.NewReader(command.Stdout()))
	if err := errors.Join(d.Decode(&waiting), d.Decode(&account)); err != nil {
		w.t.Fatalf("%s: %v", command.Stdout(), err)
	}
	return account
}

// confirm does what the owner does in a browser; decision is "allow" or "deny".
func (w *world) confirm(waiting agentapi.Connecting, name, decision string) *visitor.Page {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	browser := visitor.New(w.roots)
	defer browser.Close()
	page, err := browser.SignIn(ctx, waiting.VerificationURLComplete, owner, w.mailed())
	programs.Must(w.t, err)
	if page, err = browser.Submit(ctx, page, "code", map[string]string{"code": waiting.UserCode}); err != nil {
		w.t.Fatal(err)
	}
	if page, err = browser.Submit(ctx, page, "name", map[string]string{"name": name, "decision": decision}); err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(page.Body, "Replace it") {
		if page, err = browser.Submit(ctx, page, "replace", map[string]string{"decision": "allow"}); err != nil {
			w.t.Fatal(err)
		}
	}
	return page
}

// trusting is the control plane's authority and the computer's own.
func (w *world) trusting() *x509.CertPool {
	w.t.Helper()
	roots := w.roots.Clone()
	pem, err := os.ReadFile(w.path("data/connected-ca/root.pem"))
	programs.Must(w.t, err)
	roots.AppendCertsFromPEM(pem)
	return roots
}

// visit opens an address as somebody who is not signed in, and signs in as the
// owner.
func (w *world) visit(address string) *visitor.Page {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	browser := visitor.New(w.trusting())
	defer browser.Close()
	page, err := browser.SignIn(ctx, address, owner, w.mailed())
	programs.Must(w.t, err)
	return page
}

// ask sends one request with a device credential.
func (w *world) ask(path, credential string) int {
	w.t.Helper()
	browser := visitor.New(w.roots)
	defer browser.Close()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.authURL+path, nil)
	programs.Must(w.t, err)
	req.Header.Set("Authorization", "Bearer "+credential)
	req.Header.Set(controlapi.HeaderProtocol, controlapi.Protocol)
	resp, err := browser.Do(req)
	programs.Must(w.t, err)
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

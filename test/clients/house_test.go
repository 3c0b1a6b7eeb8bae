//go:build clients

package clients

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

// house is an agent in local mode and its owner's browser, with one app
// published.
type house struct {
	agent   *rig.Computer
	node    *rig.Node // its control plane
	mails   *rig.Mails
	env     []string // of what the owner types
	rootPEM string   // path of the local CA's root certificate
	roots   *x509.CertPool
	account agentapi.Account
	app     string // address of the published app
	back    string // a redirect URI that answers
	browser *visitor.Visitor
	proxy   string // address of a proxy that finds *.localhost, as browsers do
}

func newHouse(t testing.TB, env ...string) *house {
	t.Helper()
	h := emptyHouse(t, env...)
	h.porchlight(t, "publish", "notes", "--label", "Notes", "--port", strconv.Itoa(portOf(startApp(t))))
	h.porchlight(t, "approve", "notes")
	h.app, h.back = "https://notes."+h.account.Host, startBack(t)
	return h
}

// startBack answers at the redirect URI that it returns.
func startBack(t testing.TB) string {
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "You can close this window.")
	}))
	t.Cleanup(back.Close)
	return back.URL + "/callback"
}

// emptyHouse has nothing published. The agent has this environment, too.
func emptyHouse(t testing.TB, env ...string) *house {
	t.Helper()
	dir := t.TempDir()
	r := rig.In(t, binDir(t))
	r.Env = rig.Environ(filepath.Join(dir, "config"), env...)
	agent, err := r.Computer(t.Context(), filepath.Join(dir, "data"), "--local")
	programs.Must(t, err)
	t.Cleanup(func() {
		if code := agent.Stop(); code != 0 {
			t.Errorf("the agent ended with %d", code)
		}
	})
	h := &house{agent: agent, node: agent.Node(), mails: agent.Outbox(), env: append(r.Env, "PORCHLIGHT_DATA="+agent.Data), rootPEM: rig.Authority(agent.Data), proxy: startProxy(t)}
	h.roots, err = rig.Roots(h.rootPEM)
	programs.Must(t, err, agent.Run(&h.account, "account"))
	h.browser = visitor.New(h.roots)
	t.Cleanup(h.browser.Close)
	return h
}

// startApp answers with the identity headers it receives and with what the proxy
// must not have let through.
func startApp(t testing.TB) *httptest.Server {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"User", "Email", "Name", "App", "Role"} {
			fmt.Fprintf(w, "%s=%s|", name, strings.Join(r.Header["X-Service-"+name], ","))
		}
		io.WriteString(w, r.Header.Get("Authorization"))
	}))
	t.Cleanup(app.Close)
	return app
}

// answer is what the app answers to the owner.
func (h *house) answer() string {
	a := h.account
	return fmt.Sprintf("User=%s|Email=%s|Name=%s|App=Notes|Role=owner|", a.AccountID, a.Email, a.Name)
}

func portOf(s *httptest.Server) int { return s.Listener.Addr().(*net.TCPAddr).Port }

// porchlight runs a command of the owner's and returns what it prints.
func (h *house) porchlight(t testing.TB, args ...string) string {
	t.Helper()
	out := programs.Got(h.agent.Output(args...))(t)
	return out
}

// issue adds a client as an operator does.
func (h *house) issue(t testing.TB, name, redirectURI string) registered {
	t.Helper()
	out := registered{AuthURL: h.account.AuthURL, RedirectURI: redirectURI}
	programs.Must(t, h.node.Run(&out, "client", "add", "--name", name, "--redirect-uri", redirectURI))
	return out
}

// issuePublic adds a client without a secret, which is to be answered at redirectURI.
func (h *house) issuePublic(t testing.TB, name, registeredURI, redirectURI string) registered {
	t.Helper()
	out := registered{AuthURL: h.account.AuthURL, RedirectURI: redirectURI, Authentication: "none"}
	programs.Must(t, h.node.Run(&out, "client", "add", "--public", "--name", name, "--redirect-uri", registeredURI))
	if out.ClientID == "" || out.ClientSecret != "" {
		t.Fatalf("issued was %+v", out)
	}
	return out
}

// signIn signs the owner in by a mailed link.
func (h *house) signIn(t testing.TB) {
	t.Helper()
	page, err := h.browser.SignIn(t.Context(), h.account.AuthURL+"/account", h.account.Email, h.mails)
	if err != nil || page.Status != http.StatusOK {
		t.Fatalf("signing in: %+v, %v", page, err)
	}
}

// allow has the owner open an authorization request, read who asks, and allow
// it; it returns where the browser ended.
func (h *house) allow(t testing.TB, authorize, client string) string {
	t.Helper()
	page, err := h.browser.Open(t.Context(), authorize)
	programs.Must(t, err)
	if page.Status != http.StatusOK || !strings.Contains(page.Body, client) {
		t.Fatalf("consent: HTTP %d at %s: %s", page.Status, page.URL, page.Body)
	}
	answer := map[string]string{"decision": "allow"}
	if strings.Contains(page.Body, `name="pick"`) && !strings.Contains(page.Body, " checked>") {
		answer["app"] = h.account.Name + "/*"
	}
	if page, err = h.browser.Submit(t.Context(), page, "computer", answer); err != nil {
		t.Fatal(err)
	}
	return page.URL.String()
}

// revokeHere has the owner end a grant on their computer, and revokeOnPage on
// the account page.
func (h *house) revokeHere(t testing.TB, grant string) {
	t.Helper()
	h.porchlight(t, "grants", "revoke", grant)
}

func (h *house) revokeOnPage(t testing.TB, grant string) {
	t.Helper()
	page, err := h.browser.Open(t.Context(), h.account.AuthURL+"/account")
	if err == nil {
		page, err = h.browser.Submit(t.Context(), page, "grant", map[string]string{"grant": grant})
	}
	if err != nil || page.Status != http.StatusOK {
		t.Fatalf("revoking: %+v, %v", page, err)
	}
}

// revokeAll has the owner end every grant there is.
func (h *house) revokeAll(t testing.TB) {
	t.Helper()
	page, err := h.browser.Open(t.Context(), h.account.AuthURL+"/account")
	for err == nil && strings.Contains(page.Body, `name="grant"`) {
		page, err = h.browser.Submit(t.Context(), page, "grant", nil)
	}
	if err != nil || page.Status != http.StatusOK {
		t.Fatalf("revoking: %+v, %v", page, err)
	}
}

// startProxy runs a proxy that tunnels (CONNECT) and finds *.localhost on this
// computer. Programs that resolve names by the system, which does not know these
// everywhere, are pointed at it by HTTPS_PROXY.
func startProxy(t testing.TB) string {
	var tunnels sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
			return
		}
		there, err := controlapi.DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		here, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			there.Close()
			return
		}
		tunnels.Go(func() {
			stop := context.AfterFunc(ctx, func() { here.Close(); there.Close() })
			defer stop()
			io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
			var up sync.WaitGroup
			up.Go(func() { io.Copy(there, buffered); there.(*net.TCPConn).CloseWrite() })
			io.Copy(here, there)
			here.Close()
			up.Wait()
			there.Close()
		})
	}))
	t.Cleanup(func() { server.Close(); cancel(); tunnels.Wait() })
	return server.URL
}

// programEnv is the environment of a remote client's program: it trusts the
// local CA and finds *.localhost.
func (h *house) programEnv() []string {
	env := []string{
		"NODE_EXTRA_CA_CERTS=" + h.rootPEM, "REQUESTS_CA_BUNDLE=" + h.rootPEM, "SSL_CERT_FILE=" + h.rootPEM, "CURL_CA_BUNDLE=" + h.rootPEM,
		"HTTPS_PROXY=" + h.proxy, "https_proxy=" + h.proxy, "PYTHONDONTWRITEBYTECODE=1", "NODE_NO_WARNINGS=1",
	}
	for _, kept := range os.Environ() {
		name, _, _ := strings.Cut(kept, "=")
		switch strings.ToUpper(name) {
		case "NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS",
			"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE":
		default:
			env = append(env, kept)
		}
	}
	return env
}

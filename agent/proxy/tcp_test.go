package proxy_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"porchlight/agent/agentapi"
	"porchlight/agent/carry"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/upstream"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// tcpRig has db beside notes, an app that is reached by TCP; both are Bob's.
type tcpRig struct {
	*bearerRig
	app net.Listener
}

const dbOrigin = "https://db." + rootHost

func newTCPRig(t *testing.T, options ...func(*proxy.Config)) *tcpRig {
	t.Helper()
	r := &tcpRig{bearerRig: newBearerRig(t, options...), app: listenAt(t, "tcp", "127.0.0.1:0")}
	t.Cleanup(func() { r.app.Close() })
	r.publish("db", r.app.Addr().(*net.TCPAddr).Port)
	r.change("db", func(a *engine.App) { a.TCP = true })
	r.grantApps = map[string][]string{"1-" + bobID: {"id-db"}}
	r.bobOpens("id-notes", "id-db")
	return r
}

// reachToken is one that porchlight reach has for db.
func (r *tcpRig) reachToken(change ...func(*controlapi.AccessClaims)) string {
	return r.token(bobID, append([]func(*controlapi.AccessClaims){func(c *controlapi.AccessClaims) {
		c.ClientID, c.Grant = controlapi.ReachClient, "1-"+bobID
	}}, change...)...)
}

// reach asks for a connection as porchlight reach does.
func (r *tcpRig) reach(target string, header ...string) (*websocket.Conn, *http.Response, error) {
	r.t.Helper()
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return websocket.Dial(r.t.Context(), target, &websocket.DialOptions{
		HTTPClient: r.browser(false).client, HTTPHeader: h, Subprotocols: []string{carry.Subprotocol},
	})
}

// connected is a connection through the proxy: the program's end and the app's.
func (r *tcpRig) connected() (program, app *net.TCPConn) {
	r.t.Helper()
	ws, _, err := r.reach(dbOrigin+"/", "Authorization", "Bearer "+r.reachToken())
	programs.Must(r.t, err)
	program, mine := programs.Connected(r.t)
	ctx, cancel := context.WithCancel(context.Background())
	r.t.Cleanup(cancel)
	go func() { _ = carry.Join(ctx, ws, mine) }()
	accepted := programs.Got(r.app.Accept())(r.t)
	return program, accepted.(*net.TCPConn)
}

func TestTCPIsCarried(t *testing.T) {
	t.Parallel()
	r := newTCPRig(t)
	program, app := r.connected()
	asked := make([]byte, 1<<20)
	_, _ = rand.Read(asked)
	go func() {
		_, _ = program.Write(asked)
		_ = program.CloseWrite()
	}()
	if got := programs.Got(io.ReadAll(app))(t); !bytes.Equal(got, asked) {
		t.Errorf("the app got %d bytes of %d, or others", len(got), len(asked))
	}
	within(t, "one is here", func() bool { return r.access.Connections()["id-db"] == 1 })
	_, err := app.Write([]byte("answered after the end"))
	programs.Must(t, err, app.Close())
	if got := programs.Got(io.ReadAll(program))(t); string(got) != "answered after the end" {
		t.Errorf("the program got %q", got)
	}
	within(t, "nobody is here", func() bool { return r.access.Connections()["id-db"] == 0 })
}

// Whatever ends access ends a connection at once, also one of which half is closed already,
// and the app sees a reset, not an end.
func TestTCPEndsWithAccess(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*tcpRig) (closed int){
		"the grant": func(r *tcpRig) int { return r.revoke("1-" + bobID) },
		"the app": func(r *tcpRig) int {
			return r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Apps = nil })...)
		},
		"the person": func(r *tcpRig) int { return r.setPeople(r.person(bobID, nil)...) },
		"everything": func(r *tcpRig) int { closed, _ := r.access.GoDark(); return closed.Closed },
		"a pause":    func(r *tcpRig) int { return r.access.CloseApp("id-db") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTCPRig(t)
			first, app := r.connected()
			half, appOfHalf := r.connected()
			programs.Must(t, half.CloseWrite())
			if _, err := io.ReadAll(appOfHalf); err != nil {
				t.Fatal(err)
			}
			if closed := end(r); closed != 2 {
				t.Errorf("%d connections closed, want 2", closed)
			}
			for what, conn := range map[string]net.Conn{"the app": app, "the program": first, "the program, half-closed": half} {
				if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%s reads %v, want a reset", what, err)
				}
			}
		})
	}
}

// Weakness: an app that trusts this computer's users lets in whoever gets a connection.
// Attack: ways to ask for one that are good for web apps. Checked: a token of porchlight reach
// for this app gets one, and nothing else does; nor does that token open a web app.
func TestTCPIsReachedByItsTokenAlone(t *testing.T) {
	t.Parallel()
	r := newTCPRig(t)
	hash := sha256.Sum256([]byte(bobsPassword))
	r.passwords = []controlapi.AppPassword{{ID: "p1", AccountID: bobID, AppID: "id-db", Hash: base64.RawURLEncoding.EncodeToString(hash[:])}}
	r.sync()
	cookies := r.signedIn("db", bobID, false)
	cookie := ""
	for name, value := range cookies.cookies {
		cookie += name + "=" + value + "; "
	}
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(bobsMail+":"+bobsPassword))
	other := r.reachToken(func(c *controlapi.AccessClaims) { c.Grant = "1-other" })
	r.grantApps["1-other"] = []string{"id-notes"}
	r.sync()
	for name, header := range map[string][]string{
		"nothing":                    nil,
		"a cookie":                   {"Cookie", cookie, "Origin", dbOrigin},
		"a password":                 {"Authorization", basic},
		"a key":                      {"X-Porchlight-Key", bobsPassword},
		"another client":             bearer(r.token(bobID)),
		"another client's for apps":  bearer(r.reachToken(func(c *controlapi.AccessClaims) { c.ClientID = "client" })),
		"a grant for everything":     bearer(r.reachToken(func(c *controlapi.AccessClaims) { c.Grant = "g-" + bobID })),
		"a grant for another app":    bearer(other),
		"somebody who was not given": bearer(r.reachToken(func(c *controlapi.AccessClaims) { c.Subject = "acc-stranger" })),
		"expired":                    bearer(r.reachToken(func(c *controlapi.AccessClaims) { c.IssuedAt -= 700; c.Expires -= 700 })),
		"a page of another site":     append(bearer(r.reachToken()), "Origin", "https://elsewhere.example"),
	} {
		ws, res, err := r.reach(dbOrigin+"/", header...)
		if err == nil {
			t.Errorf("%s reaches it", name)
			ws.CloseNow()
		} else if res == nil || res.StatusCode < 400 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if ws, res, err := r.reach(origin+"/", bearer(other)...); err == nil {
		t.Error("a token of porchlight reach opens a web app")
		ws.CloseNow()
	} else if res == nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("a token of porchlight reach at a web app: %v", err)
	}
	programs.Must(t, r.app.(*net.TCPListener).SetDeadline(time.Now().Add(100*time.Millisecond)))
	if conn, err := r.app.Accept(); err == nil {
		t.Errorf("something of it came to the app: %v", conn.RemoteAddr())
	}
}

// A browser that is let in sees how the app is reached; nothing is sent to that.
func TestTCPShowsBrowsersItsWay(t *testing.T) {
	t.Parallel()
	r := newTCPRig(t)
	b := r.signedIn("db", bobID, true)
	for _, method := range []string{"GET", "POST"} {
		res, body := b.fetch(method, dbOrigin+"/", "Accept", "text/html", "Origin", dbOrigin, "Accept-Language", "de")
		if res.StatusCode != http.StatusUpgradeRequired || !strings.Contains(body, "porchlight reach db."+rootHost) {
			t.Errorf("%s: %s\n%s", method, res.Status, body)
		}
	}
	if res, body := r.browser(true).fetch("GET", dbOrigin+"/"); res.StatusCode != http.StatusUnauthorized || strings.Contains(body, "porchlight reach") {
		t.Errorf("a stranger: %s\n%s", res.Status, body)
	}
}

// Whose program listens is looked at for each connection, before the visitor has one.
func TestTCPLooksWhoListens(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r := newTCPRig(t, func(c *proxy.Config) {
		c.Welcomes = func(string, upstream.Target, agentapi.Listener) bool { return asked.Add(1) == 1 }
	})
	r.connected()
	_, res, err := r.reach(dbOrigin+"/", "Authorization", "Bearer "+r.reachToken())
	if err == nil || res == nil || res.StatusCode != http.StatusBadGateway || asked.Load() != 2 {
		t.Errorf("to a stranger's program after %d looks: %v", asked.Load(), err)
	}
}

package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// eavesdropper listens and keeps every byte it is sent.
type eavesdropper struct {
	port int
	end  func()

	mu    sync.Mutex
	heard []byte
}

func newEavesdropper(t *testing.T) *eavesdropper {
	t.Helper()
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	e := &eavesdropper{port: ln.Addr().(*net.TCPAddr).Port}
	e.end = programs.ServeConns(t, ln, func(conn net.Conn) {
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		all, _ := io.ReadAll(conn) // an abrupt end is an end
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = append(e.heard, all...)
	})
	return e
}

// bytes ends the listening and returns what came by then, once every connection is
// over.
func (e *eavesdropper) bytes() string {
	e.end()
	return string(e.heard)
}

// Weakness S2: whoever listens on an app's port gets the visits.
// Attack: another user's program does.
// Checked: on every way to an app not a byte is sent, and the visitor gets the page
// of an app that is not there, although the app's connections are closed meanwhile;
// also when many come at once.
func TestS2NoByteReachesAnotherUser(t *testing.T) {
	t.Parallel()
	for way, options := range map[string]func(*engine.App){
		"HTTP/1": func(*engine.App) {},
		"h2c":    func(app *engine.App) { app.Options.H2C = true },
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			var r *rig
			var asked atomic.Int64
			r = newRig(t, func(c *proxy.Config) {
				c.Welcomes = func(_ string, _ upstream.Target, _ agentapi.Listener) bool {
					asked.Add(1)
					r.change("notes", func(a *engine.App) { a.Live = false }) // as the engine does
					r.access.CloseApp("id-notes")
					return false
				}
			})
			heir := newEavesdropper(t)
			r.publish("notes", heir.port)
			r.change("notes", options)
			b := r.signedIn("notes", bobID, false)
			asks := []func(){
				func() {
					res, body := b.get(origin + "/secret")
					if res.StatusCode != http.StatusNotFound || !strings.Contains(body, "Nothing is published here") {
						t.Errorf("GET: %s\n%.300s", res.Status, body)
					}
				},
				func() {
					res, body := b.read(b.request("POST", origin+"/secret", strings.NewReader("secret=1"), "Origin", origin))
					if res.StatusCode != http.StatusNotFound {
						t.Errorf("POST: %s\n%.300s", res.Status, body)
					}
				},
				func() {
					if _, res, err := b.dial("wss://notes."+rootHost+"/ws", "Origin", origin); err == nil || res == nil || res.StatusCode != http.StatusNotFound {
						t.Errorf("WebSocket: %v, %v", res, err)
					}
				},
			}
			for _, ask := range asks {
				r.change("notes", func(a *engine.App) { a.Live = true })
				before := asked.Load()
				ask()
				if asked.Load() == before {
					t.Error("nobody asked who listens")
				}
			}
			r.stop()
			if heard := heir.bytes(); heard != "" {
				t.Errorf("it heard %q", heard)
			}
		})
	}
}

// TestEveryStrangersVisitorGetsAPage: those who come at the same time too, while the
// app's connections are closed by the first of them.
func TestEveryStrangersVisitorGetsAPage(t *testing.T) {
	t.Parallel()
	const visitors = 8
	var r *rig
	var all sync.WaitGroup
	all.Add(visitors)
	r = newRig(t, func(c *proxy.Config) {
		c.Welcomes = func(_ string, _ upstream.Target, _ agentapi.Listener) bool {
			all.Done()
			all.Wait()
			r.change("notes", func(a *engine.App) { a.Live = false })
			r.access.CloseApp("id-notes")
			return false
		}
	})
	heir := newEavesdropper(t)
	r.publish("notes", heir.port)
	b := r.signedIn("notes", bobID, true)
	var got sync.WaitGroup
	for range visitors {
		req := b.request("GET", origin+"/", nil)
		b.addCookies(req)
		got.Go(func() {
			res, err := b.client.Do(req)
			if err != nil {
				t.Errorf("a broken connection: %v", err)
				return
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusNotFound {
				t.Errorf("%s, %v\n%.300s", res.Status, err, body)
			}
		})
	}
	got.Wait()
	r.stop()
	if heard := heir.bytes(); heard != "" {
		t.Errorf("it heard %q", heard)
	}
}

// TestNobodyListensAnyMore: of an app that ended with the connection, or was never
// behind it, the visitor hears that it is not answering.
func TestNobodyListensAnyMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *proxy.Config) {
		c.Welcomes = func(string, upstream.Target, agentapi.Listener) bool { return false }
	})
	gone := newEavesdropper(t)
	r.publish("notes", gone.port)
	b := r.signedIn("notes", bobID, false)
	res, body := b.get(origin + "/")
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "answering") {
		t.Errorf("%s\n%.300s", res.Status, body)
	}
	r.stop()
	if heard := gone.bytes(); heard != "" {
		t.Errorf("it heard %q", heard)
	}
}

// TestAccessEndsWhileTheListenerIsLookedAt: a look that finds the right user does
// not outlive the end of access.
func TestAccessEndsWhileTheListenerIsLookedAt(t *testing.T) {
	t.Parallel()
	var r *rig
	r = newRig(t, func(c *proxy.Config) {
		c.Welcomes = func(_ string, _ upstream.Target, _ agentapi.Listener) bool {
			r.setPeople(r.person(bobID, nil)...)
			return true
		}
	})
	app := newEavesdropper(t)
	r.publish("notes", app.port)
	b := r.signedIn("notes", bobID, false)
	req := b.request("GET", origin+"/", nil)
	b.addCookies(req)
	if res, err := b.client.Do(req); err == nil { // cut off, or asked once more by net/http
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("answered %s", res.Status)
		}
	}
	r.stop()
	app.bytes()
}

// Weakness: two apps may have one port, and a connection that was made for one,
// when its user listened, would be used for the other.
// Checked: in both ways to an app each has its own, and so has each user.
func TestConnectionsAreOfOneAppAndUser(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r := newRig(t, func(c *proxy.Config) {
		c.Welcomes = func(string, upstream.Target, agentapi.Listener) bool { asked.Add(1); return true }
	})
	srv := r.app("notes", func(http.ResponseWriter, *http.Request) {})
	r.publish("wiki", srv.Listener.Addr().(*net.TCPAddr).Port)
	owner := map[string]*browser{"notes": r.signedIn("notes", ownerID, false), "wiki": r.signedIn("wiki", ownerID, false)}
	for i, step := range []struct {
		name, user string
		fresh      int64
	}{{"notes", "", 1}, {"wiki", "", 1}, {"notes", "1001", 1}} {
		r.change(step.name, func(app *engine.App) { app.User = step.user })
		for _, way := range []string{"GET", "POST"} { // both ways to the app
			before := asked.Load()
			if res, body := owner[step.name].fetch(way, "https://"+step.name+"."+rootHost+"/", "Origin", "https://"+step.name+"."+rootHost); res.StatusCode != http.StatusOK {
				t.Fatalf("%s\n%s", res.Status, body)
			}
			if n := asked.Load() - before; n != step.fresh {
				t.Errorf("step %d, %s: %d new connections, want %d", i, way, n, step.fresh)
			}
		}
	}
}

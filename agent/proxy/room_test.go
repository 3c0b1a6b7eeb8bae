package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// hanging is an app that takes requests and WebSockets and answers none.
type hanging struct {
	*httptest.Server
	requests, webSockets atomic.Int64 // under way
	open, most           atomic.Int64 // connections
}

func (r *rig) hangingApp(name string) *hanging {
	h := &hanging{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		under := &h.requests
		if req.Header.Get("Upgrade") != "" {
			c, err := websocket.Accept(w, req, nil)
			if err != nil {
				return
			}
			defer c.CloseNow()
			h.webSockets.Add(1)
			defer h.webSockets.Add(-1)
			<-c.CloseRead(req.Context()).Done()
			return
		}
		under.Add(1)
		defer under.Add(-1)
		<-req.Context().Done()
	}))
	var seen sync.Map
	h.Config.ConnState = func(c net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			seen.Store(c, true)
			if n := h.open.Add(1); n > h.most.Load() {
				h.most.Store(n)
			}
		case http.StateClosed, http.StateHijacked:
			if _, ok := seen.LoadAndDelete(c); ok && s == http.StateClosed {
				h.open.Add(-1)
			}
		}
	}
	h.Start()
	r.t.Cleanup(h.Close)
	r.publish(name, h.Listener.Addr().(*net.TCPAddr).Port)
	return h
}

// flood sends n requests at once and returns how many are refused as they must
// be, counted as they come. The others end with ctx.
func (b *browser) flood(ctx context.Context, n int, target string, refused *atomic.Int64) (wait func()) {
	var wg sync.WaitGroup
	for range n {
		req := b.request("GET", target, nil).WithContext(ctx)
		b.addCookies(req)
		wg.Go(func() {
			res, err := b.client.Do(req)
			if err != nil {
				return
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "" && bytes.Contains(body, []byte(`"error":`)) {
				refused.Add(1)
			} else if ctx.Err() == nil {
				b.r.t.Errorf("one too many: %s\n%s", res.Status, body)
			}
		})
	}
	return wg.Wait
}

// bobOpens lets Bob open these apps.
func (r *rig) bobOpens(apps ...string) {
	r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Apps = apps })...)
}

// One person at a hanging app, by 5,000 requests on 20 connections and by more
// WebSockets than there is room for: the same app takes others, other apps take
// this person, and the room is there again afterwards.
func TestRoomOfOnePersonAtOneApp(t *testing.T) {
	t.Parallel()
	const most = 256
	r := newRig(t, func(c *proxy.Config) { c.Files = 16 << 10 }) // which bound nobody here
	stuck := r.hangingApp("stuck")
	r.app("notes", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })
	r.bobOpens("id-stuck", "id-notes")
	const target = "https://stuck." + rootHost + "/"

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var refused atomic.Int64
	var waits []func()
	first := r.signedIn("stuck", bobID, true)
	for range 20 {
		b := r.browser(true)
		b.cookies = first.cookies
		b.get(target + ".porchlight/me") // there is one connection for all of them
		waits = append(waits, b.flood(ctx, 250, target, &refused))
	}
	within(t, "all but 256 of 5,000 requests are refused", func() bool {
		return refused.Load() == 20*250-most && stuck.requests.Load() == most
	})
	if n := stuck.most.Load(); n > most {
		t.Errorf("%d connections to the app were open at a time, want %d at most", n, most)
	}

	ws := r.browser(false)
	ws.cookies = first.cookies
	for i := range most {
		if _, _, err := ws.dial("wss://stuck." + rootHost + "/"); err != nil {
			t.Fatalf("WebSocket %d: %v", i, err)
		}
	}
	if _, res, err := ws.dial("wss://stuck." + rootHost + "/"); err == nil || res == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("WebSocket %d: %v, want a refusal with 503", most+1, err)
	}

	notes := r.signedIn("notes", bobID, true)
	for i := range 20 {
		if res, body := notes.get(origin + "/"); body != "fine" {
			t.Errorf("another app, visit %d: %s", i, res.Status)
		}
	}
	res, page := first.get(target)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !strings.Contains(page, "Close some of its tabs") {
		t.Errorf("a page beyond the limit: %s\n%s", res.Status, page)
	}
	owner := r.signedIn("stuck", ownerID, true)
	wait := owner.flood(ctx, 1, target, &refused)
	within(t, "the owner's request is with the app", func() bool { return stuck.requests.Load() == most+1 })

	cancel()
	wait()
	for _, wait := range waits {
		wait()
	}
	stuck.CloseClientConnections()
	ws.client.CloseIdleConnections()
	within(t, "nothing is counted any more", func() bool {
		if stuck.webSockets.Load() > 0 {
			r.access.CloseAll()
		}
		taken, kept := proxy.Taken(r.proxy)
		return taken == 0 && kept == 0
	})
	ctx, cancel = context.WithCancel(t.Context())
	wait = first.flood(ctx, 1, target, &refused)
	within(t, "there is room again", func() bool { return stuck.requests.Load() == 1 })
	cancel()
	wait()
}

// The shares of the process's files: one person has an eighth in all apps, all
// together have a quarter.
func TestRoomOfTheFiles(t *testing.T) {
	t.Parallel()
	const files = 128
	log := new(lines)
	r := newRig(t, func(c *proxy.Config) {
		c.Files = files
		c.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	apps := []string{"one", "two"}
	stuck := map[string]*hanging{}
	for _, name := range apps {
		stuck[name] = r.hangingApp(name)
	}
	people := []string{bobID, "acc-carl", "acc-dora"}
	all := []controlapi.Person{{AccountID: ownerID, Email: "maya@example.com", Role: controlapi.RoleOwner, Status: controlapi.PersonActive, Epoch: 1}}
	for _, id := range people {
		all = append(all, controlapi.Person{AccountID: id, Email: id + "@example.com", Role: controlapi.RoleMember, Status: controlapi.PersonActive, Apps: []string{"id-one", "id-two"}, Epoch: 1})
	}
	r.setPeople(all...)
	ctx, cancel := context.WithCancel(t.Context())
	var waits []func()
	taken := 0
	for i, id := range people {
		want := files / 8 // an eighth each, until a quarter is taken
		if i == 2 {
			want = 0
		}
		var refused atomic.Int64
		for _, name := range apps {
			b := r.signedIn(name, id, true)
			waits = append(waits, b.flood(ctx, files/8, "https://"+name+"."+rootHost+"/", &refused))
		}
		taken += want
		within(t, fmt.Sprintf("%s has %d under way, all others are refused", id, want), func() bool {
			now, _ := proxy.Taken(r.proxy)
			return now == taken && refused.Load() == int64(2*files/8-want)
		})
	}
	if n := stuck["one"].open.Load() + stuck["two"].open.Load(); n > files/4 {
		t.Errorf("%d connections to apps, want %d at most", n, files/4)
	}
	for _, what := range []string{`limit="one person at all apps"`, "limit=everybody"} {
		if n := log.count(what); n != 1 {
			t.Errorf("%d lines in the log say %s, want 1:\n%s", n, what, log)
		}
	}
	cancel()
	for _, wait := range waits {
		wait()
	}
	within(t, "nothing is counted any more", func() bool {
		now, kept := proxy.Taken(r.proxy)
		return now == 0 && kept == 0
	})
}

// However a request ends, its room is free again.
func TestRoomIsLeft(t *testing.T) {
	t.Parallel()
	ends := map[string]func(r *rig, stuck *hanging, cancel func()){
		"the visitor leaves": func(_ *rig, _ *hanging, cancel func()) { cancel() },
		"the app breaks off": func(_ *rig, stuck *hanging, _ func()) { stuck.CloseClientConnections() },
		"the app is withdrawn": func(r *rig, _ *hanging, _ func()) {
			r.change("stuck", func(a *engine.App) { a.Live = false }) // or a client that tries again is back
			r.access.CloseApp("id-stuck")
		},
		"access is taken away": func(r *rig, _ *hanging, _ func()) {
			if _, err := r.access.Deny(store.DenyRecord{AccountID: bobID}); err != nil {
				r.t.Error(err)
			}
		},
		"the agent stops": func(r *rig, _ *hanging, _ func()) { r.stop() },
	}
	for name, end := range ends {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, http2), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				stuck := r.hangingApp("stuck")
				r.bobOpens("id-stuck")
				b := r.signedIn("stuck", bobID, http2)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var wg sync.WaitGroup
				for _, method := range []string{"GET", "POST"} { // both ways to the app
					req := b.request(method, "https://stuck."+rootHost+"/", nil, "Origin", "https://stuck."+rootHost).WithContext(ctx)
					b.addCookies(req)
					wg.Go(func() {
						if res, err := b.client.Do(req); err == nil {
							res.Body.Close()
						}
					})
				}
				within(t, "both are with the app", func() bool { return stuck.requests.Load() == 2 })
				if taken, kept := proxy.Taken(r.proxy); taken != 2 || kept != 2 {
					t.Errorf("%d under way in %d counts, want 2 in 2", taken, kept)
				}
				end(r, stuck, cancel)
				wg.Wait()
				within(t, "nothing is counted any more", func() bool {
					taken, kept := proxy.Taken(r.proxy)
					return taken == 0 && kept == 0
				})
			})
		}
	}
}

// lines is a log kept in memory.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func (l *lines) count(what string) int { return strings.Count(l.String(), what) }

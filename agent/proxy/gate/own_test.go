package gate_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"porchlight/agent/proxy/gate"
	"porchlight/agent/proxy/limits"
)

// TestLeftContext: a handler that leaves behind what it derived from its request's context
// costs the connection, and nothing else; both end.
func TestLeftContext(t *testing.T) {
	t.Parallel()
	left := make(chan context.Context, 1)
	told := make(chan struct{}, 1)
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/left" {
			ctx, cancel := context.WithCancel(r.Context())
			_ = cancel // never called: that is what the test is about
			context.AfterFunc(r.Context(), func() { told <- struct{}{} })
			left <- ctx
		}
	}), func(h *house) {
		g := h.guest()
		g.say(request("GET", "/left"))
		if got := g.heard(); !strings.HasPrefix(got, "HTTP/1.1 200") {
			h.t.Errorf("%q", got)
		}
		ctx := <-left
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
			h.t.Error("a context outlives its request")
		}
		if ctx.Err() != context.Canceled {
			h.t.Error(ctx.Err())
		}
		<-told
	})
}

// TestRestEnds: the rest of a body holds no connection once its handler has returned,
// however it did.
func TestRestEnds(t *testing.T) {
	t.Parallel()
	handler := letIn(func(w http.ResponseWriter, r *http.Request) {
		gate.AwaitBody(w, r)
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
	})
	for path, within := range map[string]time.Duration{
		"/": limits.BodyTimeout + time.Second, "/close": time.Second, "/abort": time.Second,
	} {
		onWay(t, own, handler, func(h *house) {
			g := h.guest()
			lines := []string{"Content-Length: 5"}
			if path == "/close" {
				lines = append(lines, "Connection: close")
			}
			g.say(request("POST", path, lines...) + "he")
			if took := g.gone(time.Hour); took > within {
				h.t.Errorf("%s: gone after %v", path, took)
				g.conn.Close()
			}
			if got := g.heard(); strings.HasPrefix(got, "HTTP/1.1 200") == (path == "/abort") {
				h.t.Errorf("%s: %q", path, got)
			}
		})
	}
}

// TestDate: an answer that took long says when it was given.
func TestDate(t *testing.T) {
	t.Parallel()
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) { time.Sleep(time.Hour) }), func(h *house) {
		g := h.guest()
		g.say(request("GET", "/"))
		time.Sleep(time.Hour + time.Second)
		given := time.Now().Add(-time.Second).UTC().Format(http.TimeFormat)
		if got := g.heard(); !strings.Contains(got, "\r\nDate: "+given+"\r\n") {
			h.t.Errorf("given at %s: %q", given, got)
		}
	})
}

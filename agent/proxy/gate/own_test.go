package gate_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
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

package localapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// fresh knows the connections of one server whose first request has not come to
// a handler. net/http drops those without a word when it is told to shut down; a
// caller who came a moment before would be refused for no reason it could know.
// Its methods are safe for concurrent use.
type fresh struct {
	mu    sync.Mutex // protects what follows
	conns map[net.Conn]struct{}
	none  chan struct{} // closed when the last is gone, if somebody waits
}

type freshKey struct{}

// accepted is for http.Server.ConnContext, which is called before Serve accepts
// the next one.
func (f *fresh) accepted(ctx context.Context, c net.Conn) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns == nil {
		f.conns = make(map[net.Conn]struct{})
	}
	f.conns[c] = struct{}{}
	return context.WithValue(ctx, freshKey{}, c)
}

// changed is for http.Server.ConnState.
func (f *fresh) changed(c net.Conn, s http.ConnState) {
	if s == http.StateClosed || s == http.StateHijacked {
		f.remove(c)
	}
}

// handler notes that a request has come.
func (f *fresh) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(freshKey{}).(net.Conn); ok {
			f.remove(c)
		}
		next.ServeHTTP(w, r)
	})
}

func (f *fresh) remove(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
	if len(f.conns) == 0 && f.none != nil {
		close(f.none)
		f.none = nil
	}
}

// wait returns when there are none, at the latest after d. No more may come.
func (f *fresh) wait(d time.Duration) {
	f.mu.Lock()
	none := make(chan struct{})
	if len(f.conns) == 0 {
		close(none)
	} else {
		f.none = none
	}
	f.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-none:
	case <-timer.C:
	}
}

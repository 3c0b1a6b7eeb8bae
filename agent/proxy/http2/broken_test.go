package http2_test

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/proxy/http2"
	"porchlight/agent/proxy/limits"
)

// faulty is a visitor's connection that panics when it is written to, once it is to.
type faulty struct {
	net.Conn
	now    atomic.Bool
	shut   sync.Once
	closed chan struct{}
}

func (f *faulty) Close() error {
	f.shut.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

func (f *faulty) Write(p []byte) (int, error) {
	if f.now.CompareAndSwap(true, false) {
		panic("a fault in Write")
	}
	return f.Conn.Write(p)
}

// Weakness: a panic on a goroutine that is neither the reader's nor a handler's ended the
// agent.
// Checked: it ends the connection, wherever the last stream is ended or something is
// written, and is told.
func TestFaultsBesideTheHandlers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h       http.HandlerFunc
		unread  bool             // the visitor reads nothing
		meet    func(v *visitor) // what leads there
		idle    bool             // the fault is when the last stream ends
		asks    int              // streams
		forSure time.Duration    // by then the connection has ended
	}{
		"the timer of the connection": {h: slow, idle: true, asks: 1, forSure: limits.PingAfter + limits.PingTimeout + time.Second},
		"the timer of a stream": {h: func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
			<-r.Context().Done()
		}, idle: true, asks: 1, forSure: 2 * time.Second},
		"the timer of a write": {h: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/1" {
				<-r.Context().Done()
				return
			}
			time.AfterFunc(time.Second, func() { http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) })
			flood(w, r)
		}, idle: true, asks: 2, unread: true, forSure: 3 * time.Second},
		"the end":                    {h: slow, idle: true, asks: 1, meet: func(v *visitor) { v.conn.Close() }, forSure: time.Second},
		"who writes after a handler": {h: func(http.ResponseWriter, *http.Request) {}, asks: 1, forSure: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				theirs, ours := net.Pipe()
				told := make(chan any, 10)
				f := &faulty{Conn: address{theirs}, closed: make(chan struct{})}
				var idle atomic.Bool
				stop := serve(t, own, f, c.h, func(conf *http2.Config) {
					conf.Broken = func(what any) { told <- what }
					conf.State = func(_ net.Conn, s http.ConnState) {
						if s == http.StateIdle && idle.CompareAndSwap(true, false) {
							panic("a fault when nothing is under way any more")
						}
					}
				})
				var v *visitor
				if c.unread {
					v = visitUnread(t, ours, 1<<20)
				} else {
					v = visit(t, ours, false)
				}
				synctest.Wait()
				idle.Store(c.idle)
				f.now.Store(!c.idle)
				for i := range c.asks {
					v.ask(uint32(2*i+1), "GET", "/"+string('1'+rune(i)), true)
				}
				synctest.Wait()
				if c.meet != nil {
					c.meet(v)
				}
				time.Sleep(c.forSure)
				synctest.Wait()
				select {
				case <-f.closed:
				default:
					t.Error("the connection stays")
				}
				if len(told) != 1 {
					t.Errorf("%d faults are told", len(told))
				}
				ours.Close()
				stop()
			})
		})
	}
}

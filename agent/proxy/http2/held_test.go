package http2_test

import (
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/limits"
)

// The server's end waits for no visitor who does not read, whoever writes to it and
// whether or not we still read.
func TestCloseWaitsForNoWrite(t *testing.T) {
	t.Parallel()
	for name, pings := range map[string]int{"we read": 0, "we do not": limits.ControlFrames/2 + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				theirs, ours := net.Pipe()
				stop := serve(t, own, address{theirs}, http.HandlerFunc(flood))
				v := visitUnread(t, ours, 1<<20)
				v.ask(1, "GET", "/", true)
				synctest.Wait()
				for range pings {
					v.WritePing(false, [8]byte{})
				}
				synctest.Wait()
				begun := time.Now()
				stop()
				if took := time.Since(begun); took > limits.CutOff {
					t.Errorf("it took %v", took)
				}
				ours.Close()
			})
		})
	}
}

// Weakness: streams that wait for the connection's window, which never opens, and are
// reset.
// Checked: nothing holds their requests any more.
func TestResetWhileQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := net.Pipe()
		var mu sync.Mutex
		var requests []weak.Pointer[http.Request]
		stop := serve(t, own, address{theirs}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			requests = append(requests, weak.Make(r))
			mu.Unlock()
			flood(w, r)
		}))
		v := visit(t, ours, false, frames.Setting{ID: frames.SettingInitialWindowSize, Val: 1 << 20})
		const asked = 40
		for i := range asked {
			id := uint32(2*i + 1)
			v.ask(id, "GET", "/", true)
			synctest.Wait() // it waits, the first one after all that the window lets through
			v.WriteRSTStream(id, frames.ErrCodeCancel)
			synctest.Wait()
		}
		runtime.GC()
		held := 0
		for _, r := range requests {
			if r.Value() != nil {
				held++
			}
		}
		if len(requests) != asked || held > asked/4 {
			t.Errorf("%d of %d requests are held", held, len(requests))
		}
		ours.Close()
		stop()
	})
}

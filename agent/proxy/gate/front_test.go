package gate

import (
	"crypto/tls"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestHandshakesRest: of the goroutines that did handshakes, many at once, a few wait for
// the next ones, do these, and end with the listener.
func TestHandshakesRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		f := newFront(nil, &tls.Config{}, newConns(1000, time.Minute, nil, log), nil, log)
		for range 3 {
			var visitors []net.Conn
			for range 3 * mostResting {
				visitor, raw := net.Pipe()
				visitors = append(visitors, visitor)
				f.shake(f.conns.add(raw))
			}
			synctest.Wait()
			if n := f.resting.Load(); n != 0 {
				t.Errorf("%d rest while more handshakes are under way than may", n)
			}
			for _, visitor := range visitors {
				visitor.Close()
			}
			synctest.Wait()
			if n := f.resting.Load(); n != mostResting {
				t.Errorf("%d rest after them, want %d", n, mostResting)
			}
		}
		close(f.next)
		f.shaking.Wait()
		if n := f.resting.Load(); n != 0 {
			t.Errorf("%d rest after the end", n)
		}
	})
}

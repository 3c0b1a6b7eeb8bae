package localapi

import (
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/people"
)

// TestPaces: so much at once, and so much more as time goes on, as docs/writing-an-app.md
// tells apps.
func TestPaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &API{paces: newPaces()}
		gives := func(processes ...string) (n int) {
			for _, process := range processes {
				for a.slowChange(people.Actor{Process: process}) == nil {
					n++
				}
			}
			return n
		}
		asks := func() (n int) {
			for a.paces.strangers.Take(time.Now(), "1001") == 0 {
				n++
			}
			return n
		}
		for _, c := range []struct {
			pass         time.Duration
			one, all, of int // what one program gives, all programs, and one user asks
		}{{0, 30, 60, 200}, {10 * time.Second, 5, 10, 200}, {time.Hour, 30, 60, 200}, {time.Second, 0, 1, 20}} {
			time.Sleep(c.pass)
			one := gives("a")
			if all := one + gives("b", "c"); one != c.one || all != c.all {
				t.Errorf("after %v one program let %d in, want %d, and all %d, want %d", c.pass, one, c.one, all, c.all)
			}
			if n := asks(); n != c.of {
				t.Errorf("after %v a user's programs asked %d times, want %d", c.pass, n, c.of)
			}
		}
	})
}

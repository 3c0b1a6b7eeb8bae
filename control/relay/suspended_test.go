package relay

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: an agent that does not obey goes on serving what its operator has ended.
// Attack: one that keeps a visit open and takes another, by its own node and by another
// one. Checked: ten seconds after the suspension the visit is cut off and no other begins,
// also by a tunnel that comes afterwards; before that, and once it is resumed, they do.
func TestSuspendedIsCutOff(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	var since atomic.Pointer[time.Time]
	at := &clock{now: time.Now()}
	one := serveNode(t, store, "one", nil)
	two := serveNode(t, store, "two", func(c *Config) {
		c.Date = at.Now
		c.Authenticate = func(context.Context, string) (controlapi.Computer, error) {
			computer := controlapi.Computer{ID: "maya", Host: "maya.localhost:8443"}
			if s := since.Load(); s != nil {
				computer.Suspended = *s
			}
			return computer, nil
		}
	})
	one.sees(t, 2)
	a := connectAgent(t, two.addr, "maya")
	visitor, data, hello := a.visitedAt(one.addr)
	suspended := at.Now()
	since.Store(&suspended)
	two.Suspend("maya", suspended)
	exchange(t, data, visitor, "it may say so") // for ten seconds
	at.advance(suspendedAfter)
	two.Suspend("maya", time.Time{})
	two.Suspend("maya", suspended)
	if n, err := visitor.Read(make([]byte, 1)); err == nil || timedOut(err) {
		t.Errorf("a visit goes on: %d bytes, %v", n, err)
	}
	turnedAway := func(when string) {
		t.Helper()
		for _, addr := range []string{one.addr, two.addr} {
			got := programs.Got(io.ReadAll(visit(t, addr, hello)))(t)
			if !bytes.Equal(got, unrecognizedName) && !bytes.Equal(got, internalError) {
				t.Errorf("%s, a visitor is answered %x", when, got)
			}
		}
	}
	turnedAway("while it is suspended")
	b := connectAgent(t, two.addr, "maya") // asks anew, and is known to be suspended
	programs.Eventually(t, "the tunnel that came afterwards is cut off", func() bool {
		_, err := two.routes.enter("maya.localhost", sourceOf(visitor.LocalAddr()), time.Now())
		return err == errSuspended
	})
	turnedAway("by a tunnel that came afterwards")
	since.Store(nil)
	two.Suspend("maya", time.Time{})
	visitor, data, _ = b.visitedAt(two.addr)
	exchange(t, data, visitor, "it is resumed")
}

package proxy_test

import (
	"sync/atomic"
	"testing"

	"porchlight/test/programs"
)

// A panic while a request is answered, over HTTP/1.1 and then over HTTP/2: the connection
// it came on ends, another one lives, and each is counted.
func TestPanicCostsOneConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.app("notes", fine)
	var left atomic.Int64 // lookups until the one that panics
	r.onLookup = func() {
		if left.Add(-1) == 0 {
			panic("a fault that a test planted")
		}
	}
	for _, overHTTP2 := range []bool{false, true} {
		meets, other := r.signedIn("notes", bobID, overHTTP2), r.signedIn("notes", bobID, overHTTP2)
		for _, b := range []*browser{meets, other} {
			programs.Got(b.visit())(t)
		}
		left.Store(2)                                                  // the one of a visit that is in the register of what is open
		within(t, "the connection it came on has ended", func() bool { // browsers ask once more, on another one
			reused, err := meets.visit()
			return err == nil && !reused
		})
		r.faults++
		if broken := r.proxy.Broken(); broken != r.faults {
			t.Errorf("over HTTP/2 %v: %d faults are counted, want %d", overHTTP2, broken, r.faults)
		}
		if reused, err := other.visit(); !reused || err != nil {
			t.Errorf("over HTTP/2 %v: another connection lives %v: %v", overHTTP2, reused, err)
		}
		if open := r.access.Connections(); len(open) > 0 {
			t.Errorf("over HTTP/2 %v: it counts as open: %v", overHTTP2, open)
		}
	}
}

package doctor

import (
	"context"
	"sync"
	"testing"
)

// TestAtOnce: what waits for one check does not keep another waiting.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	var together sync.WaitGroup
	together.Add(2)
	wait := func(context.Context) []Finding { // ends only beside the other
		together.Done()
		together.Wait()
		return []Finding{{Check: "one"}}
	}
	if found := atOnce(t.Context(), []check{wait, wait}); len(found) != 2 {
		t.Errorf("%+v", found)
	}
}

// TestRoomSaid: room is said in a unit that is read at a glance.
func TestRoomSaid(t *testing.T) {
	t.Parallel()
	for free, want := range map[uint64]string{0: "0 MB are free.", 512 << 20: "512 MB are free.", 10<<30 - 1: "10239 MB are free.", 10 << 30: "10 GB are free.", 26790 << 20: "26 GB are free."} {
		if said := roomSaid(free).String(); said != want {
			t.Errorf("%d: %q, and not %q", free, said, want)
		}
	}
}

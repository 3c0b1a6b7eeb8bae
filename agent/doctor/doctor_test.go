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

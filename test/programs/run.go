package programs

import (
	"context"
	"sync"
	"testing"
)

// Run has something run until stop is called, or the test ends: its context ends then,
// and an error of it is one of the test.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("what ran ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

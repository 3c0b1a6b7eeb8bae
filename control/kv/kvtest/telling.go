package kvtest

import (
	"context"
	"time"

	"porchlight/control/kv"
)

// Telling is a store that says when a write has returned, so that tests of what stands
// on a store wait for what is written instead of sleeping.
type Telling struct {
	kv.Store
	Done chan struct{}
}

// Tell makes a store telling.
func Tell(store kv.Store) *Telling {
	return &Telling{Store: store, Done: make(chan struct{}, 1)}
}

// Update also says that it has returned. What nobody waits for is one word, not many.
func (s *Telling) Update(ctx context.Context, fn func(kv.Tx) error) error {
	defer s.tell()
	return s.Store.Update(ctx, fn)
}

// PutAll implements kv.Store.
func (s *Telling) PutAll(ctx context.Context, ttl time.Duration, rows ...kv.Item) error {
	defer s.tell()
	return s.Store.PutAll(ctx, ttl, rows...)
}

func (s *Telling) tell() {
	select {
	case s.Done <- struct{}{}:
	default:
	}
}

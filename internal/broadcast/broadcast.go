// Package broadcast tells any number of listeners that something may have
// changed. It carries no value: a listener looks for itself, so a slow
// listener misses repetitions and never the last change.
package broadcast

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Signal is ready in its zero value and safe for concurrent use. A nil one can be
// raised and listened to as well, and never reports anything.
type Signal struct {
	mu        sync.Mutex                      // held while listeners are replaced
	listeners atomic.Pointer[[]chan struct{}] // read without mu: every request raises one
}

// Subscribe returns a channel that is readable after a change, until cancel is
// called.
func (s *Signal) Subscribe() (changed <-chan struct{}, cancel func()) {
	if s == nil {
		return nil, func() {}
	}
	ch := make(chan struct{}, 1)
	s.replace(func(now []chan struct{}) []chan struct{} { return append(now, ch) })
	return ch, func() {
		s.replace(func(now []chan struct{}) []chan struct{} {
			return slices.DeleteFunc(now, func(other chan struct{}) bool { return other == ch })
		})
	}
}

// replace changes a copy of the listeners, which then takes their place.
func (s *Signal) replace(change func([]chan struct{}) []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var now []chan struct{}
	if old := s.listeners.Load(); old != nil {
		now = slices.Clone(*old)
	}
	now = change(now)
	s.listeners.Store(&now)
}

// Raise tells every listener. It never blocks.
func (s *Signal) Raise() {
	if s == nil {
		return
	}
	listeners := s.listeners.Load()
	if listeners == nil {
		return
	}
	for _, ch := range *listeners {
		Raise(ch)
	}
}

// Raise puts a signal into a channel that holds one, unless there is one. It never blocks.
func Raise(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

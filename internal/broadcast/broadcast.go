// Package broadcast tells any number of listeners that something may have
// changed. It carries no value: whoever is told looks for itself, so a slow
// listener misses repetitions and never the last change.
package broadcast

import "sync"

// Signal is ready in its zero value and safe for concurrent use. A nil one can be
// raised and listened to as well, and never tells of anything.
type Signal struct {
	mu        sync.Mutex
	listeners map[chan struct{}]struct{} // guarded by mu
}

// Subscribe returns a channel that is readable after a change, until cancel is
// called.
func (s *Signal) Subscribe() (changed <-chan struct{}, cancel func()) {
	if s == nil {
		return nil, func() {}
	}
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners == nil {
		s.listeners = map[chan struct{}]struct{}{}
	}
	s.listeners[ch] = struct{}{}
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, ch)
	}
}

// Raise tells every listener. It never blocks.
func (s *Signal) Raise() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for ch := range s.listeners {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

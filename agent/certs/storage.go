package certs

import (
	"context"
	"fmt"
	"sync"

	"github.com/caddyserver/certmagic"
)

// storage is a directory that this process has to itself, as the agent has its
// data directory: locks need no files, which a killed process would leave
// behind for the next one to wait on.
type storage struct {
	certmagic.FileStorage

	mu   sync.Mutex // protects what follows
	held map[string]chan struct{}
}

func newStorage(dir string) *storage {
	return &storage{FileStorage: certmagic.FileStorage{Path: dir}, held: make(map[string]chan struct{})}
}

// TryLock implements certmagic.TryLocker.
func (s *storage) TryLock(_ context.Context, name string) (bool, error) {
	_, ok := s.take(name)
	return ok, nil
}

// take gives the lock, or what is closed when it is given back.
func (s *storage) take(name string) (free <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.held[name]; held != nil {
		return held, false
	}
	s.held[name] = make(chan struct{})
	return nil, true
}

// Lock implements certmagic.Locker.
func (s *storage) Lock(ctx context.Context, name string) error {
	for {
		free, ok := s.take(name)
		if ok {
			return nil
		}
		select {
		case <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Unlock implements certmagic.Locker.
func (s *storage) Unlock(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held[name]
	if held == nil {
		return fmt.Errorf("%s is not locked", name)
	}
	delete(s.held, name)
	close(held)
	return nil
}

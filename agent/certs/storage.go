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

	mu     sync.Mutex // protects what follows
	locked map[string]chan struct{}
}

func newStorage(dir string) *storage {
	return &storage{FileStorage: certmagic.FileStorage{Path: dir}, locked: make(map[string]chan struct{})}
}

// TryLock implements certmagic.TryLocker.
func (s *storage) TryLock(_ context.Context, name string) (bool, error) {
	_, ok := s.tryLock(name)
	return ok, nil
}

// tryLock gives the lock, or what is closed when it is given back.
func (s *storage) tryLock(name string) (free <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if locked := s.locked[name]; locked != nil {
		return locked, false
	}
	s.locked[name] = make(chan struct{})
	return nil, true
}

// Lock implements certmagic.Locker.
func (s *storage) Lock(ctx context.Context, name string) error {
	for {
		free, ok := s.tryLock(name)
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
	locked := s.locked[name]
	if locked == nil {
		return fmt.Errorf("%s is not locked", name)
	}
	delete(s.locked, name)
	close(locked)
	return nil
}

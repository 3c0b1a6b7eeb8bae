package ownersecret

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zalando/go-keyring"
)

const (
	// service is what our entries in the keychain are filed under.
	service = "porchlight"
	// answerIn is how long the keychain may take. A person who is asked for the
	// keychain's password takes longer: the call then fails with ErrLocked, the
	// question stays on the screen, and a later call finds the keychain open.
	answerIn = 5 * time.Second
	// maxCalls bounds the calls under way, those left behind in a keychain that
	// never answered among them.
	maxCalls = 4
)

// Both belong to the process and not to a store, because what calls hang on is
// the one keychain of the session.
var (
	// slots holds one token for each call under way.
	slots = make(chan struct{}, maxCalls)
	// stuck counts calls that nobody waits for any more but that the operating
	// system has not answered.
	stuck atomic.Int32
)

// KeychainStore keeps the secret in the operating system's keychain: Secret
// Service on Linux, Keychain on macOS, Credential Manager on Windows.
//
// The libraries below have no cancellation, and a locked keychain without
// anybody to ask blocks for ever; so every call runs on a goroutine that is left
// behind when it takes too long. A Set that failed with ErrLocked may therefore
// still happen once the keychain is opened: Get before making another secret.
type KeychainStore struct {
	dataDir string
	timeout time.Duration
	item    item
}

var _ Store = KeychainStore{}

// Keychain is the store for dataDir in the keychain of whoever is logged in.
func Keychain(dataDir string) KeychainStore {
	return KeychainStore{dataDir: dataDir, timeout: answerIn}
}

// Kind implements Store.
func (KeychainStore) Kind() string { return "keychain" }

// Get implements Store.
func (s KeychainStore) Get(ctx context.Context) (string, error) {
	secret, err := s.call(ctx, func(names [2]string) (string, error) {
		secret, err := keyring.Get(service, names[0])
		if errors.Is(err, keyring.ErrNotFound) {
			return keyring.Get(service, names[1])
		}
		return secret, err
	})
	if err != nil {
		return "", err
	}
	if err := s.item.check(secret); err != nil {
		return "", err
	}
	return secret, nil
}

// Set implements Store.
func (s KeychainStore) Set(ctx context.Context, secret string) error {
	if err := s.item.check(secret); err != nil {
		return err
	}
	_, err := s.call(ctx, func(names [2]string) (string, error) {
		if err := keyring.Set(service, names[0], secret); err != nil {
			return "", err
		}
		_ = keyring.Delete(service, names[1]) // never read again, so left is not lost
		return "", nil
	})
	return err
}

// Delete implements Store.
func (s KeychainStore) Delete(ctx context.Context) error {
	_, err := s.call(ctx, func(names [2]string) (string, error) {
		err, former := keyring.Delete(service, names[0]), keyring.Delete(service, names[1])
		switch {
		case errors.Is(former, keyring.ErrNotFound):
			return "", err
		case errors.Is(err, keyring.ErrNotFound):
			return "", former
		}
		return "", errors.Join(err, former)
	})
	return err
}

// call runs fn with the names of the entry, of today and of former versions, on a
// goroutine of its own, and waits for it no longer than the store's timeout.
func (s KeychainStore) call(ctx context.Context, fn func(names [2]string) (string, error)) (string, error) {
	hash, abs, err := entry(s.dataDir)
	if err != nil {
		return "", fmt.Errorf("cannot tell where %s is kept: %w", s.item.name(), err)
	}
	names := [2]string{s.item.readable(hash, abs), s.item.entry(hash)}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	limit, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	late := func() (string, error) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%w, or does not answer", ErrLocked)
	}
	select {
	case slots <- struct{}{}:
	case <-limit.Done():
		return late()
	}

	type answer struct {
		secret string
		err    error
	}
	answers := make(chan answer, 1)
	var left atomic.Bool // set by whichever side is done first
	go func() {
		var a answer
		a.err = ready(limit)
		if a.err == nil {
			a.err = limit.Err() // nothing begins that nobody waits for
		}
		if a.err == nil {
			a.secret, a.err = fn(names)
		}
		<-slots
		answers <- a
		if !left.CompareAndSwap(false, true) {
			stuck.Add(-1)
		}
	}()
	select {
	case a := <-answers:
		return a.secret, classify(a.err)
	case <-limit.Done():
	}
	if stuck.Add(1); !left.CompareAndSwap(false, true) {
		stuck.Add(-1) // it answered at the last moment
		a := <-answers
		return a.secret, classify(a.err)
	}
	return late()
}

// classify makes the keychain's words one of this package's errors. Only an
// entry known to be absent counts as absent.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, keyring.ErrNotFound):
		return ErrNotFound
	case errors.Is(err, ErrLocked), errors.Is(err, ErrUnavailable):
		return err
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w, or does not answer", ErrLocked)
	case refused(err):
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

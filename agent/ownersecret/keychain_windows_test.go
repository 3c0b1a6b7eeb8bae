package ownersecret

import (
	"errors"
	"testing"

	"porchlight/test/programs"
)

// The system's Credential Manager keeps a secret for each data directory, gives it back, and
// forgets it.
func TestCredentialManager(t *testing.T) {
	t.Parallel()
	one, other := Keychain(t.TempDir()), Keychain(t.TempDir())
	secret := New()
	if _, err := one.Get(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Fatalf("before: %v", err)
	}
	programs.Must(t, one.Set(t.Context(), secret))
	if got, err := one.Get(t.Context()); err != nil || got != secret {
		t.Errorf("kept: %v, the same: %v", err, got == secret)
	}
	if _, err := other.Get(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("another data directory: %v", err)
	}
	programs.Must(t, one.Delete(t.Context()))
	if _, err := one.Get(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("after: %v", err)
	}
}

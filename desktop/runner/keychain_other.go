//go:build !linux

package runner

import "context"

// keychainLocked: these systems unlock the keychain with the session, or ask
// once by themselves.
func keychainLocked(context.Context) bool { return false }

//go:build !((dragonfly && cgo) || (freebsd && cgo) || linux || netbsd || openbsd)

package ownersecret

import "context"

// ready has nothing to ask where the keychain is part of the system.
func ready(context.Context) error { return nil }

// refused: these systems have no error of their own for a dismissed question
// that could be told from others.
func refused(error) bool { return false }

//go:build !windows

package socket

import (
	"errors"
	"syscall"
)

// InUse says whether the error of listening at an address means that somebody else has it.
func InUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// MayBeNobodys says whether an address that is InUse may be one that nobody has, as on
// Windows.
func MayBeNobodys(error) bool { return false }

//go:build !windows

package localapi

import (
	"errors"
	"syscall"
)

// inUse says whether err means that somebody else has the address.
func inUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

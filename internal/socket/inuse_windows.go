package socket

import (
	"errors"

	"golang.org/x/sys/windows"
)

// InUse says whether the error of listening at an address means that it is not to be had:
// somebody else has it, or MayBeNobodys.
func InUse(err error) bool {
	return errors.Is(err, windows.WSAEADDRINUSE) || MayBeNobodys(err)
}

// MayBeNobodys says whether an address that is InUse may be one that nobody has. Windows
// forbids an address which another program asked for exclusively, and likewise the ranges
// of ports that it keeps back (for Hyper-V and WSL).
func MayBeNobodys(err error) bool { return errors.Is(err, windows.WSAEACCES) }

package socket

import (
	"errors"

	"golang.org/x/sys/windows"
)

// InUse says whether the error of listening at an address means that somebody else has it.
// Windows calls it forbidden when that one asked for the address exclusively.
func InUse(err error) bool {
	return errors.Is(err, windows.WSAEADDRINUSE) || errors.Is(err, windows.WSAEACCES)
}

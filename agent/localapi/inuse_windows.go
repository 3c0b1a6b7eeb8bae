package localapi

import (
	"errors"

	"golang.org/x/sys/windows"
)

// inUse says whether err means that somebody else has the address. Windows calls
// it forbidden when that one asked for the address exclusively.
func inUse(err error) bool {
	return errors.Is(err, windows.WSAEADDRINUSE) || errors.Is(err, windows.WSAEACCES)
}

//go:build !linux

package procinfo

import (
	"cmp"
	"time"
)

// These systems name the process of a socket with the socket, or not at all.
func lookThrough(Socket, time.Time) (place, bool)        { return place{}, true }
func lookInto(int, Socket, int, time.Time) (place, bool) { return place{}, true }
func isAt(place, Socket) bool                            { return false }
func program(int) string                                 { return "" }

// socketOf is the socket of a process, where the system names that.
func socketOf(p Process) Socket {
	return Socket{User: cmp.Or(p.User, p.UserID), UserID: p.UserID, holder: p}
}

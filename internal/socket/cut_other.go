//go:build !linux

package socket

import "net"

// Cut does nothing: this system has no way to.
func Cut(net.Conn) (done bool) { return false }

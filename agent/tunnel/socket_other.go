//go:build !linux

package tunnel

import "net"

// tune has nothing to add to keepAlive here.
func tune(*net.TCPConn) {}

//go:build !linux

package relay

import "net"

// splice is Linux's: here every byte is copied.
func (d *direction) splice(_, _ *net.TCPConn) (done bool, _ error) { return false, nil }

type pipePool struct{}

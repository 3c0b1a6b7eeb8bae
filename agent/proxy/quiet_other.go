//go:build !unix

package proxy

import (
	"errors"
	"net"
)

// canDirect is false where a socket cannot be looked into without waiting:
// http.Transport, which has a goroutine read from every connection, does all.
const canDirect = false

type quiet struct{}

func (*quiet) is(net.Conn) bool { return false }

func (*quiet) more() bool { return false }

func (*quiet) mayTrade(net.Conn) bool { return false }

func (*quiet) exchange(_, _ []byte) (asked, n int, err error) { return 0, 0, errors.ErrUnsupported }

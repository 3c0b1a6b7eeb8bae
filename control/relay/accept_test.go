package relay

import (
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
)

// tired fails with each of its errors before it accepts.
type tired struct {
	net.Listener
	mu   sync.Mutex
	left []syscall.Errno
}

func (l *tired) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.left) > 0 {
		errno := l.left[0]
		l.left = l.left[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", errno)}
	}
	return l.Listener.Accept()
}

// A process without a file descriptor left, a firewall that refuses a connection
// and one that broke before it was accepted do not end the relay.
func TestAcceptSurvives(t *testing.T) {
	t.Parallel()
	_, addr := serveRelay(t, nil, func(l net.Listener) net.Listener {
		return &tired{Listener: l, left: []syscall.Errno{syscall.EMFILE, syscall.EMFILE, syscall.EPERM, syscall.EPROTO, syscall.ENETDOWN}}
	})
	connectAgent(t, addr, "maya")
}

package upstream

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"porchlight/agent/agentapi"
)

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// connect dials by name, for this system has no other way. Whoever took its place since
// it was looked at is seen by peerOf.
func (f *found) connect(ctx context.Context) (net.Conn, error) {
	return dialer.DialContext(ctx, "unix", f.path)
}

// peerOf is whose program listened when the connection was made.
func peerOf(conn net.Conn) (agentapi.Listener, error) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return agentapi.Listener{}, err
	}
	var peer *unix.Xucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); err != nil {
		return agentapi.Listener{}, err
	}
	if failed != nil {
		return agentapi.Listener{}, failed
	}
	return listenerOf(peer.Uid), nil
}

package upstream

import (
	"context"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
)

const dirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// listening is the number of the socket that listens at the port; 0 where nobody is seen
// to, and at a unix socket, which tells itself who took a connection.
func (t Target) listening() uint64 {
	if t.Socket != "" {
		return 0
	}
	return procinfo.ListenerSocket(t.IP(), t.Port).Inode
}

// connect reaches the socket that was looked at, whatever has its name by now.
func (f *found) connect(ctx context.Context) (net.Conn, error) {
	fd, err := unix.Openat(f.dir, f.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, notThere(err)
	}
	defer unix.Close(fd)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return nil, notThere(err)
	}
	if now.Dev != f.stat.Dev || now.Ino != f.stat.Ino || now.Uid != f.stat.Uid {
		return nil, notThere(unix.EAGAIN) // another is there since, and is looked at next time
	}
	return dialer.DialContext(ctx, "unix", "/proc/self/fd/"+strconv.Itoa(fd))
}

// peerOf is whose program listened when the connection was made.
func peerOf(conn net.Conn) (agentapi.Listener, error) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return agentapi.Listener{}, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return agentapi.Listener{}, err
	}
	if failed != nil {
		return agentapi.Listener{}, failed
	}
	return agentapi.Listener(procinfo.Named(int(peer.Pid), strconv.FormatUint(uint64(peer.Uid), 10))), nil
}

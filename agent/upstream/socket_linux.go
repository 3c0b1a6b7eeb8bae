package upstream

import (
	"context"
	"net"
	"strconv"

	"golang.org/x/sys/unix"

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

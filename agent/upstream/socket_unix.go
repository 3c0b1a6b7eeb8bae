//go:build linux || darwin

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
)

// A path says nothing about who listens there: links lead elsewhere, and whoever may
// write to a directory can put another socket in it. So each dial walks the path anew,
// follows no link, wants directories that only the socket's owner, this user or root
// may change, connects to the very socket it looked at, and asks the kernel who took
// the connection.

// found is a socket at the end of a path.
type found struct {
	path string
	dir  int // a file of the directory it is in
	name string
	stat unix.Stat_t
}

func (f *found) close() { unix.Close(f.dir) }

// dialSocket connects to the socket at a path, and says whose program took it.
func dialSocket(ctx context.Context, path string) (net.Conn, agentapi.Listener, error) {
	if err := agentapi.CheckSocketPath(path); err != nil {
		return nil, agentapi.Listener{}, SocketError(err.Error())
	}
	at, err := find(path)
	if err != nil {
		return nil, agentapi.Listener{}, err
	}
	defer at.close()
	if what := others(at.stat); what != "" {
		return nil, agentapi.Listener{}, notReached(path, what)
	}
	conn, err := at.connect(ctx)
	if err != nil {
		return nil, agentapi.Listener{}, err
	}
	// However it is called by now, it was listened at by this name: a link of the file
	// system, a mount or a new name for it changes nothing of that.
	if what := agentapi.NotAnApps(conn.RemoteAddr().String()); what != "" {
		conn.Close()
		return nil, agentapi.Listener{}, notReached(path, "one of "+what)
	}
	peer, err := peerOf(conn)
	if err != nil {
		conn.Close()
		return nil, agentapi.Listener{}, fmt.Errorf("ask who is at the socket: %w", err)
	}
	if slices.Contains(noApps, peer.Program) {
		conn.Close()
		return nil, agentapi.Listener{}, notReached(path, peer.Program+"'s")
	}
	return conn, peer, nil
}

// noApps are programs whose sockets open more than an app, wherever their users put
// them. Linux names the program.
var noApps = []string{
	"ssh-agent", "gpg-agent", "gnome-keyring-daemon", "dbus-daemon", "dbus-broker", "dockerd", "containerd", "podman", "crio", "lxd", "incusd",
}

// notReached refuses a socket that is no app's.
func notReached(path, what string) error {
	return SocketError(fmt.Sprintf("The socket %s is %s, which opens far more than one app. Porchlight does not reach it.", path, what))
}

// SocketOwner is whose the socket at a path is, and nobody where there is none or it is
// refused.
func SocketOwner(path string) agentapi.Listener {
	at, err := find(path)
	if err != nil {
		return agentapi.Listener{}
	}
	at.close()
	return listenerOf(at.stat.Uid)
}

// peerOf is whose program listened when the connection was made.
func peerOf(conn net.Conn) (agentapi.Listener, error) {
	pid, uid, err := procinfo.Peer(conn.(syscall.Conn))
	if err != nil {
		return agentapi.Listener{}, err
	}
	return agentapi.Listener(procinfo.Named(pid, strconv.FormatUint(uint64(uid), 10))), nil
}

func listenerOf(uid uint32) agentapi.Listener {
	id := strconv.FormatUint(uint64(uid), 10)
	return agentapi.Listener{User: procinfo.UserName(id), UserID: id}
}

// find walks to the socket. That there is none is an error as of net.Dial.
func find(path string) (*found, error) {
	names := strings.Split(path, "/")[1:]
	last := len(names) - 1
	dir, err := unix.Open("/", dirFlags, 0)
	if err != nil {
		return nil, notThere(err)
	}
	var dirs []unix.Stat_t
	for i := range last {
		next, err := unix.Openat(dir, names[i], dirFlags, 0)
		unix.Close(dir)
		if err != nil {
			return nil, onTheWay(err, "/"+strings.Join(names[:i+1], "/"))
		}
		dir = next
		var stat unix.Stat_t
		if err := unix.Fstat(dir, &stat); err != nil {
			unix.Close(dir)
			return nil, notThere(err)
		}
		dirs = append(dirs, stat)
	}
	at := &found{path: path, dir: dir, name: names[last]}
	err = unix.Fstatat(dir, at.name, &at.stat, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil {
		err = at.check(dirs)
	} else {
		err = notThere(err)
	}
	if err != nil {
		at.close()
		return nil, err
	}
	return at, nil
}

func notThere(err error) error { return &net.OpError{Op: "dial", Net: "unix", Err: err} }

// onTheWay is why a directory could not be entered. A link where a directory should be
// is no directory.
func onTheWay(err error, dir string) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return SocketError(fmt.Sprintf("%s is a link or no directory, and links are not followed to an app's socket. Give the socket's real path: readlink -f says it.", dir))
	}
	return notThere(err)
}

// check refuses what is no socket, and directories that others could change.
func (f *found) check(dirs []unix.Stat_t) error {
	switch f.stat.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
	case unix.S_IFLNK:
		return onTheWay(unix.ELOOP, f.path)
	default:
		return SocketError(fmt.Sprintf("%s is no socket.", f.path))
	}
	names := strings.Split(f.path, "/")
	for i, dir := range dirs {
		if open(dir, f.stat.Uid) {
			return SocketError(fmt.Sprintf("Others can put a socket of theirs into %s. Take the right to write there from them (chmod go-w), or have the app listen elsewhere.",
				strings.Join(names[:i+2], "/")))
		}
	}
	return nil
}

// open says whether others than root, this user and the socket's owner can change what
// is in a directory. Where the sticky bit is set, as in /tmp, they cannot change what is
// not theirs.
func open(dir unix.Stat_t, owner uint32) bool {
	if dir.Uid != 0 && dir.Uid != owner && dir.Uid != uint32(os.Geteuid()) {
		return true
	}
	mode := uint32(dir.Mode)
	if mode&unix.S_ISVTX != 0 {
		return false
	}
	return mode&unix.S_IWOTH != 0 || mode&unix.S_IWGRP != 0 && !ownGroup(dir.Uid, dir.Gid)
}

// ownGroup says whether a group is root's, or the one that many systems make for one
// user alone, of the same name.
func ownGroup(uid, gid uint32) bool {
	if gid == 0 {
		return true
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil || u.Gid != strconv.FormatUint(uint64(gid), 10) {
		return false
	}
	g, err := user.LookupGroupId(u.Gid)
	return err == nil && g.Name == u.Username
}

// others says what a socket is that other programs listen on by another name: those this
// user's environment names, and those of fixed places.
func others(socket unix.Stat_t) string {
	bus, _ := strings.CutPrefix(os.Getenv("DBUS_SESSION_BUS_ADDRESS"), "unix:path=")
	bus, _, _ = strings.Cut(bus, ",")
	docker, _ := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	for _, it := range [...]struct{ path, what string }{
		{os.Getenv("SSH_AUTH_SOCK"), "the ssh agent's"},
		{bus, "the session bus's"},
		{docker, "the containers'"},
		{"/run/dbus/system_bus_socket", "the system bus's"},
		{"/var/run/dbus/system_bus_socket", "the system bus's"},
		{"/var/run/docker.sock", "the containers'"},
		{"/run/podman/podman.sock", "the containers'"},
		{"/run/containerd/containerd.sock", "the containers'"},
		{"/run/crio/crio.sock", "the containers'"},
		{"/run/systemd/private", "systemd's"},
	} {
		var stat unix.Stat_t
		if it.path != "" && unix.Stat(it.path, &stat) == nil && stat.Dev == socket.Dev && stat.Ino == socket.Ino {
			return it.what
		}
	}
	return ""
}

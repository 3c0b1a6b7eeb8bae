package localapi

import (
	"errors"
	"net"
	"path/filepath"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/internal/words"
)

// socketName is the owner's socket in its directory.
const socketName = "owner.sock"

// errTaken is wrapped when somebody answers on the socket.
var errTaken = errors.New("the socket is in use")

// listenOpen listens for the open tier at addr, host:port of this computer
// alone; port 0 picks a free one. The errors are sentences for the owner.
func listenOpen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, words.Errorf("%q is not an address of the form %s", addr, agentapi.DefaultAddress)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, words.Errorf("the loopback API serves this computer alone, so it listens on 127.0.0.1 and not on %q", host)
	}
	address := net.JoinHostPort(host, port)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, procinfo.CannotListen(err, address, "--api")
	}
	return l, nil
}

// listenForOwner listens for the owner tier on a unix socket of dataDir and returns
// its path too. The socket is in a directory only the owner may enter, outside
// the data directory, whose path may be too long for a socket. Where that is not
// to be had, because another user took its name in a directory of everybody's, it
// is in the data directory or in a directory with a name nobody can foresee. A
// socket that a killed agent left behind is replaced. Where the system tells who
// connects, other users are turned away even if they came that far. Closing the
// listener removes socket and directory. On Windows the socket is a named pipe, which
// needs no directory and is its owner's alone.
func listenForOwner(dataDir string) (net.Listener, string, error) {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, "", words.Errorf("cannot make %s an absolute path: %w", dataDir, err)
	}
	var failed []error
	for _, dir := range socketDirs(abs) {
		l, err := listenOwner(dir)
		if err == nil {
			return l, l.Addr().String(), nil
		}
		if errors.Is(err, errTaken) {
			return nil, "", words.Errorf("another Porchlight serves %s already", abs)
		}
		failed = append(failed, err)
	}
	l, err := listenUnforeseen()
	if err == nil {
		return l, l.Addr().String(), nil
	}
	return nil, "", words.Errorf("cannot listen for the owner: %w", errors.Join(append(failed, err)...))
}

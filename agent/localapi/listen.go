package localapi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/internal/words"
)

// maxSocketPath is the longest path of a unix socket, in bytes: macOS has room
// for 104, the zero at the end included.
const maxSocketPath = 103

// socketName is the owner's socket in its directory.
const socketName = "owner.sock"

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
// listener removes socket and directory.
func listenForOwner(dataDir string) (net.Listener, string, error) {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, "", words.Errorf("cannot make %s an absolute path: %w", dataDir, err)
	}
	var failed []error
	for _, dir := range socketDirs(abs) {
		path := filepath.Join(dir, socketName)
		if len(path) > maxSocketPath {
			continue
		}
		l, err := listenOwner(dir, path)
		if err == nil {
			return l, path, nil
		}
		if errors.Is(err, errTaken) {
			return nil, "", words.Errorf("another Porchlight serves %s already", abs)
		}
		failed = append(failed, err)
	}
	l, path, err := listenUnforeseen()
	if err == nil {
		return l, path, nil
	}
	return nil, "", words.Errorf("cannot listen for the owner: %w", errors.Join(append(failed, err)...))
}

// listenUnforeseen listens in a new directory for temporary files, which nobody
// can have made before. A killed agent leaves it behind, so it comes last.
func listenUnforeseen() (net.Listener, string, error) {
	parent := os.TempDir()
	if len(parent) > maxSocketPath-len("/porchlight-0123456789/owner.sock") && runtime.GOOS != "windows" {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "porchlight-*")
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(dir, socketName)
	l, err := listenOwner(dir, path)
	if err != nil {
		_ = os.Remove(dir)
	}
	return l, path, err
}

// socketDirs are the directories to try, by preference.
func socketDirs(abs string) []string {
	sum := sha256.Sum256([]byte(abs))
	hash := hex.EncodeToString(sum[:4])
	var dirs []string
	if own := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(own) {
		dirs = append(dirs, filepath.Join(own, "porchlight-"+hash))
	}
	if runtime.GOOS == "windows" { // where each user has such a directory
		return append(dirs, filepath.Join(os.TempDir(), "porchlight-"+hash))
	}
	name := fmt.Sprintf("porchlight-%d-%s", os.Getuid(), hash)
	dirs = append(dirs, filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name))
	return append(slices.Compact(dirs), filepath.Join(abs, "socket"))
}

// errTaken is wrapped when somebody answers on the socket.
var errTaken = errors.New("the socket is in use")

func listenOwner(dir, path string) (net.Listener, error) {
	err := os.Mkdir(dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		if err := agentapi.CheckSocketDir(dir); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	default:
		// Whatever the umask took away; the directory is ours and empty.
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if c, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(errTaken, c.Close())
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &ownerListener{UnixListener: l.(*net.UnixListener), dir: dir}, nil
}

// ownerListener gives the connections of the owner's own processes.
type ownerListener struct {
	*net.UnixListener
	dir string
}

func (l *ownerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if ours(c) {
			return c, nil
		}
		c.Close()
	}
}

// Close removes the directory too, when nothing else is in it.
func (l *ownerListener) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		os.Remove(l.dir)
	}
	return err
}

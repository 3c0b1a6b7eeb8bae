//go:build !windows

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
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/internal/private"
)

// maxSocketPath is the longest path of a unix socket, in bytes: macOS has room
// for 104, the zero at the end included.
const maxSocketPath = 103

// listenUnforeseen listens in a new directory for temporary files, which nobody
// can have made before. A killed agent leaves it behind, so it comes last.
func listenUnforeseen() (net.Listener, error) {
	parent := os.TempDir()
	if len(parent) > maxSocketPath-len("/porchlight-0123456789/owner.sock") {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "porchlight-*")
	if err != nil {
		return nil, err
	}
	l, err := listenOwner(dir)
	if err != nil {
		_ = os.Remove(dir)
	}
	return l, err
}

// socketDirs are the directories to try, by preference.
func socketDirs(abs string) []string {
	sum := sha256.Sum256([]byte(abs))
	hash := hex.EncodeToString(sum[:4])
	var dirs []string
	if own := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(own) {
		dirs = append(dirs, filepath.Join(own, "porchlight-"+hash))
	}
	name := fmt.Sprintf("porchlight-%d-%s", os.Getuid(), hash)
	dirs = append(dirs, filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name))
	return append(slices.Compact(dirs), filepath.Join(abs, "socket"))
}

func listenOwner(dir string) (net.Listener, error) {
	path := filepath.Join(dir, socketName)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("%s is longer than the path of a socket may be", path)
	}
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
	l, err := private.Listen(path)
	if err != nil {
		return nil, err
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

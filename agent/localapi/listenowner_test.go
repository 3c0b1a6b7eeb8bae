//go:build !windows

package localapi

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

func TestListenOwner(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	l, path, err := listenForOwner(data)
	programs.Must(t, err)
	defer l.Close()
	for name, want := range map[string]os.FileMode{path: os.ModeSocket | 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if len(path) > maxSocketPath || strings.HasPrefix(path, data) {
		t.Errorf("the socket is at %s", path)
	}

	if _, _, err := listenForOwner(data); err == nil || !strings.Contains(err.Error(), "another Porchlight serves") {
		t.Errorf("a second agent on the data directory: %v", err)
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Errorf("the first agent after that: %v", err)
	} else {
		c.Close()
	}
	other, otherPath, err := listenForOwner(t.TempDir())
	programs.Must(t, err)
	other.Close()
	if otherPath == path {
		t.Error("two data directories share a socket")
	}

	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("something is left of the socket: %v", err)
	}
}

// TestListenOwnerAfterAKill: a killed agent leaves its socket; nobody answers on
// it, so the next agent may have its place.
func TestListenOwnerAfterAKill(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	killed, path, err := listenForOwner(data)
	programs.Must(t, err)
	killed.(*ownerListener).SetUnlinkOnClose(false)
	programs.Must(t, killed.(*ownerListener).UnixListener.Close())
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("nothing was left behind: %v", err)
	}
	l, again, err := listenForOwner(data)
	programs.Must(t, err)
	defer l.Close()
	if again != path {
		t.Errorf("the socket moved from %s to %s", path, again)
	}
}

// TestListenOwnerDistrustsDirectories. Weakness: in a directory for everybody's
// temporary files, anybody may make ours first. Attack: make it before the agent
// does, open to others or as a link. Checked: not used.
func TestListenOwnerDistrustsDirectories(t *testing.T) {
	t.Parallel()
	for what, prepare := range map[string]func(dir string) error{
		"open to others": func(dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Chmod(dir, 0o755)
		},
		"a link": func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"a file": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		dir := filepath.Join(t.TempDir(), "porchlight")
		programs.Must(t, prepare(dir))
		if l, err := listenOwner(dir); err == nil {
			l.Close()
			t.Errorf("a directory that is %s was used", what)
		}
	}
}

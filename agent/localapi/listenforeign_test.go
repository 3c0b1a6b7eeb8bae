//go:build !windows

package localapi

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Weakness: without XDG_RUNTIME_DIR the owner's socket was in a directory of /tmp
// whose name anybody can work out, and whoever made it first kept Porchlight from
// starting. Attack: make it, as another user. Checked: the agent listens
// elsewhere, in a directory nobody else may enter, and its own programs find it.
func TestForeignDirectoryStopsNoStart(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a directory for another user")
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", "") // so /tmp
	short := programs.Got(os.MkdirTemp("/tmp", "data-"))(t)
	t.Cleanup(func() { os.RemoveAll(short) })
	deep := filepath.Join(short, strings.Repeat("d", 100))
	programs.Must(t, os.Mkdir(deep, 0o700))
	for what, data := range map[string]string{"short path": short, "deep path": deep} {
		t.Run(what, func(t *testing.T) {
			foreign := socketDirs(data)[0]
			if filepath.Dir(foreign) != "/tmp" {
				t.Fatalf("the first choice is %s", foreign)
			}
			programs.Must(t, os.Mkdir(foreign, 0o755))
			t.Cleanup(func() { os.RemoveAll(foreign) })
			programs.Must(t, os.Chown(foreign, 65534, 65534))
			l, path, err := listenForOwner(data)
			programs.Must(t, err)
			defer l.Close()
			dir := filepath.Dir(path)
			if strings.HasPrefix(path, foreign) || len(path) > maxSocketPath {
				t.Errorf("the socket is at %s", path)
			}
			if err := agentapi.CheckSocketDir(dir); err != nil {
				t.Errorf("its own programs do not trust it: %v", err)
			}
			c := programs.Got(net.Dial("unix", path))(t)
			c.Close()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", dir, err)
			}
		})
	}
}

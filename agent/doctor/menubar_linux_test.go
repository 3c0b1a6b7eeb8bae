package doctor

import (
	"net"
	"path/filepath"
	"testing"

	"porchlight/test/programs"
)

// TestSessionBusIsTheSessions: without a directory of the session, what is called bus in
// the directory somebody happens to be in is nobody's message bus.
func TestSessionBusIsTheSessions(t *testing.T) {
	dir := t.TempDir()
	ln := programs.Got(net.Listen("unix", filepath.Join(dir, "bus")))(t)
	defer ln.Close()
	t.Chdir(dir)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	for runtime, want := range map[string]string{"": "", ".": "", dir: "unix:path=" + filepath.Join(dir, "bus")} {
		t.Setenv("XDG_RUNTIME_DIR", runtime)
		if got := sessionBus(); got != want {
			t.Errorf("with XDG_RUNTIME_DIR=%q: %q, want %q", runtime, got, want)
		}
	}
}

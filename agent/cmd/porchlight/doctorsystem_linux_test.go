package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godbus/dbus/v5"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/agent/ownersecret"
	"porchlight/test/programs"
)

// smallDisk is a directory on a disk of one megabyte.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("this test needs to mount a small disk, as root with that right: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// nobody runs a program as another user until the test ends.
func nobody(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it runs a program of another user")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// TestDoctorFindsOtherUsers: a program of another user on an approved app's port,
// and one that wants to register, wait for the owner.
func TestDoctorFindsOtherUsers(t *testing.T) {
	t.Parallel()
	address := programs.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	ln := programs.Got(net.Listen("tcp", address))(t)
	heir := nobody(t, "/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", port)
	s := startAgent(t)
	app := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.NotFoundHandler()}}
	app.Start()
	s.ok("publish", "notes", "--label", "Notes", "--port", port)
	s.ok("approve", "notes")
	app.Close()
	programs.Begin(t, heir)
	programs.Eventually(t, "the other user's program listens", func() bool {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	// On a busy machine the program behind a socket is not found in the time there is for it.
	programs.Eventually(t, "the program is found", func() bool {
		s.ok("publish", "notes", "--label", "Notes", "--port", port)
		return strings.Contains(s.doctor()["app notes"].Text, "now python3")
	})
	s.finds("app notes", agentapi.VerdictWrong, "was approved for root; now python3", "porchlight approve notes")
	s.ok("approve", "notes")
	s.finds("app notes", agentapi.VerdictFine, "answers on port", "")

	running := programs.Got(agentapi.ReadRunning(s.dir))(t)
	register := nobody(t, "curl", "-sS", "http://"+running.API+"/engine/register", "-H", "Content-Type: application/json", "-d", `{"appId":"com.example.notes","pid":1}`)
	programs.Must(t, register.Run())
	s.finds("user nobody", agentapi.VerdictNote, "wants to register", "porchlight users allow nobody")
	s.ok("users", "deny", "nobody")
	if _, still := s.doctor()["user nobody"]; still {
		t.Error("answered, and still told of")
	}
}

// session is a desktop session's message bus that starts nothing by itself.
func session(t *testing.T) *dbus.Conn {
	t.Helper()
	dir, err := os.MkdirTemp("", "pl") // not t.TempDir: a socket's path is short
	programs.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	config, address := filepath.Join(dir, "bus.conf"), "unix:path="+filepath.Join(dir, "bus")
	programs.Must(t, os.WriteFile(config, []byte(`<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>`+address+`</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
</busconfig>`), 0o600))
	background(t, nil, "dbus-daemon", "--nofork", "--config-file="+config)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "share"))
	var conn *dbus.Conn
	programs.Eventually(t, "the message bus is up", func() bool {
		conn, err = dbus.Connect(address)
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	return conn
}

// background runs a program until the test ends, or stop is called.
func background(t *testing.T, input []byte, program string, args ...string) (stop func()) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("this test needs %s; build/setup.sh test installs it", program)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin = bytes.NewReader(input)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return programs.Begin(t, cmd).Kill
}

// waitFor waits until something on the bus has a name, or nothing has any more.
func waitFor(t *testing.T, conn *dbus.Conn, name string, there bool) {
	t.Helper()
	programs.Eventually(t, fmt.Sprintf("%s on the bus: %v", name, there), func() bool {
		var has bool
		programs.Must(t, conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, name).Store(&has))
		return has == there
	})
}

// TestDoctorFindsTheDesktopAtFault: a panel without tray icons, and a locked
// keychain. It changes the environment, so it runs beside no other test.
func TestDoctorFindsTheDesktopAtFault(t *testing.T) {
	if found := doctor.MenuBar(t.Context()); found != nil {
		t.Errorf("without a session: %+v", found)
	}
	conn := session(t)
	if f := doctor.MenuBar(t.Context())[0]; f.State != agentapi.VerdictNote || !strings.Contains(f.Text, "No panel") || !strings.Contains(f.Next, "gnome-shell-extension-appindicator") {
		t.Errorf("no panel: %+v", f)
	}
	programs.Got(conn.RequestName("org.kde.StatusNotifierWatcher", dbus.NameFlagDoNotQueue))(t)
	if f := doctor.MenuBar(t.Context())[0]; f.State != agentapi.VerdictFine {
		t.Errorf("with a panel: %+v", f)
	}

	s := startAgent(t)
	secret := programs.Got(ownersecret.File(s.dir).Get(t.Context()))(t)
	const service = "org.freedesktop.secrets"
	stop := background(t, []byte("a test's password"), "gnome-keyring-daemon", "--components=secrets", "--foreground", "--unlock")
	waitFor(t, conn, service, true)
	programs.Must(t, ownersecret.Keychain(s.dir).Set(t.Context(), secret))
	programs.Must(t, ownersecret.File(s.dir).Delete(t.Context()))
	s.finds("owner", agentapi.VerdictFine, "You are the owner", "")
	stop()
	waitFor(t, conn, service, false)
	background(t, nil, "gnome-keyring-daemon", "--components=secrets", "--foreground")
	waitFor(t, conn, service, true)
	s.finds("owner", agentapi.VerdictWrong, "Unlock your keychain first", "Unlock it")
}

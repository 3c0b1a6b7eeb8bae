package tray

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fyne.io/systray"
	"github.com/godbus/dbus/v5"

	"porchlight/desktop/menu"
	"porchlight/desktop/verbs"
	"porchlight/test/programs"
)

// Calls of the menu that make no sense are answered, and the end of the tray while a stranger on
// the session bus makes more than are answered leaves nothing behind, as TestMain looks.
func TestStrangerOnTheBus(t *testing.T) {
	address := "unix:path=" + filepath.Join(t.TempDir(), "bus")
	daemon := exec.Command("dbus-daemon", "--session", "--nofork", "--address="+address, "--print-address")
	said := programs.Got(daemon.StdoutPipe())(t)
	programs.Must(t, daemon.Start())
	defer daemon.Wait()
	defer daemon.Process.Kill()
	programs.Got(said.Read(make([]byte, 1)))(t) // it listens
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)

	tr := New(slog.New(slog.DiscardHandler), func() string { return "dark" }, func(verbs.Action) {})
	end := tr.Start()
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		tr.Run(ctx, func() menu.Menu { return menu.Empty(menu.IconOff, "the last", false) })
	}()
	t.Cleanup(systray.ResetMenu) // which ends the goroutines of all lines
	<-tr.made
	item := fmt.Sprintf("org.kde.StatusNotifierItem-%d-1", os.Getpid())
	peer := func() dbus.BusObject {
		conn := programs.Got(dbus.Connect(address))(t)
		t.Cleanup(func() { conn.Close() })
		return conn.Object(item, "/StatusNotifierItem/menu")
	}
	stranger, panel := peer(), peer()
	asked := func(method string, args ...any) error {
		in, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		return panel.CallWithContext(in, "com.canonical.dbusmenu."+method, 0, args...).Err
	}
	if err := asked("GetLayout", int32(0), int32(-1), []string{}); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"no such property": asked("GetProperty", int32(0), "no such"),
		"no such method":   asked("NoSuch"),
		"no such argument": asked("GetLayout", "root"),
	} {
		if _, answered := err.(dbus.Error); !answered {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 2000 {
		stranger.Go("com.canonical.dbusmenu.GetLayout", dbus.FlagNoReplyExpected, nil, int32(0), int32(-1), []string{})
	}
	cancel()
	<-ended
	end()
}

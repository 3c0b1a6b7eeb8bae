package tray

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fyne.io/systray"
	"github.com/godbus/dbus/v5"

	"porchlight/desktop/menu"
	"porchlight/desktop/verbs"
	"porchlight/test/programs"
)

// sessionBus starts a bus for the test, which throws out who sends a message of a MiB.
func sessionBus(t *testing.T) (address string) {
	t.Helper()
	address = "unix:path=" + filepath.Join(t.TempDir(), "bus")
	config := filepath.Join(t.TempDir(), "bus.conf")
	programs.Must(t, os.WriteFile(config, []byte(`<busconfig><type>session</type><listen>`+address+`</listen><limit name="max_message_size">1048576</limit>
		<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`), 0o600))
	daemon := exec.Command("dbus-daemon", "--config-file="+config, "--nofork", "--print-address")
	said := programs.Got(daemon.StdoutPipe())(t)
	programs.Must(t, daemon.Start())
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	programs.Got(said.Read(make([]byte, 1)))(t) // it listens
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	return address
}

// trayName is how the tray is called on the bus.
func trayName() string { return fmt.Sprintf("org.kde.StatusNotifierItem-%d-1", os.Getpid()) }

// The bus throws out the tray's own connection and no other: the tray comes back, and its menu
// can be read.
func TestTrayThrownOffTheBus(t *testing.T) {
	address := sessionBus(t)
	watcher := programs.Got(dbus.Connect(address))(t)
	defer watcher.Close()
	owners := make(chan *dbus.Signal, 10)
	programs.Must(t, watcher.AddMatchSignal(dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, trayName())))
	watcher.Signal(owners)
	owned := func(want bool) {
		t.Helper()
		for {
			select {
			case s := <-owners:
				if (s.Body[2] != "") == want {
					return
				}
			case <-time.After(time.Minute):
				t.Fatalf("the tray's name has an owner: not %t", want)
			}
		}
	}
	tr := New(slog.New(slog.DiscardHandler), func() string { return "dark" }, func(verbs.Action) {})
	end := tr.Start()
	defer end()
	t.Cleanup(systray.ResetMenu)
	<-tr.made
	owned(true)
	systray.SetTooltip(strings.Repeat("long ", 1<<20))
	owned(false)
	owned(true)
	in, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	if err := watcher.Object(trayName(), "/StatusNotifierItem/menu").CallWithContext(in, "com.canonical.dbusmenu.GetLayout", 0, int32(0), int32(-1), []string{}).Err; err != nil {
		t.Error(err)
	}
	systray.SetTooltip("")
}

// Calls of the menu that make no sense are answered, and the end of the tray while a stranger on
// the session bus makes more than are answered leaves nothing behind, as TestMain looks.
func TestStrangerOnTheBus(t *testing.T) {
	address := sessionBus(t)
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
	peer := func() dbus.BusObject {
		conn := programs.Got(dbus.Connect(address))(t)
		t.Cleanup(func() { conn.Close() })
		return conn.Object(trayName(), "/StatusNotifierItem/menu")
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

// A panel that passes over an icon, because it still draws the one before, is told of it once more.
func TestIconIsToldTwice(t *testing.T) {
	panel := programs.Got(dbus.Connect(sessionBus(t)))(t)
	defer panel.Close()
	told := make(chan *dbus.Signal, 10)
	programs.Must(t, panel.AddMatchSignal(dbus.WithMatchMember("NewIcon")))
	panel.Signal(told)
	tr := New(slog.New(slog.DiscardHandler), func() string { return "dark" }, func(verbs.Action) {})
	end := tr.Start()
	defer end()
	t.Cleanup(systray.ResetMenu)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() {
		defer close(ended)
		tr.Run(ctx, func() menu.Menu { return menu.Empty(menu.IconOff, "the last", false) })
	}()
	<-tr.made
	asked := panel.Object(trayName(), "/StatusNotifierItem").CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.kde.StatusNotifierItem", "Title")
	programs.Must(t, asked.Err)
	tr.Set(menu.Empty(menu.IconTrouble, "trouble", false))
	for tellings := 0; tellings < 2; {
		select {
		case one := <-told:
			if one.Sequence > asked.ResponseSequence { // else of the icon that it began with
				tellings++
			}
		case <-time.After(time.Minute):
			t.Fatalf("it is told %d times", tellings)
		}
	}
}

// ayatana is a panel that items register with.
type ayatana struct{ came chan dbus.Sender }

func (a ayatana) RegisterStatusNotifierItem(from dbus.Sender, _ string) *dbus.Error {
	a.came <- from
	return nil
}

// A panel that reads names of icons, and says so only after the tray has registered with it, gets
// one.
func TestNamesForAPanelThatSaysLate(t *testing.T) {
	panel := programs.Got(dbus.Connect(sessionBus(t)))(t)
	defer panel.Close()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	watcher := ayatana{make(chan dbus.Sender, 10)}
	programs.Must(t, panel.Export(watcher, "/StatusNotifierWatcher", "org.kde.StatusNotifierWatcher"))
	programs.Got(panel.RequestName("org.kde.StatusNotifierWatcher", dbus.NameFlagDoNotQueue))(t)
	tr := New(slog.New(slog.DiscardHandler), func() string { return "dark" }, func(verbs.Action) {})
	end := tr.Start()
	defer end()
	t.Cleanup(systray.ResetMenu)
	<-tr.made
	from := <-watcher.came
	named := func() bool {
		select {
		case from = <-watcher.came: // it has another connection: that of a test before had ended
		default:
		}
		v, err := panel.Object(string(from), "/StatusNotifierItem").GetProperty("org.kde.StatusNotifierItem.IconName")
		name, _ := v.Value().(string)
		return err == nil && name != ""
	}
	if named() {
		t.Error("there is a name for a panel that reads none")
	}
	programs.Got(panel.RequestName("org.ayatana.indicator.application", dbus.NameFlagDoNotQueue))(t)
	programs.Eventually(t, "the icon has a name", named)
}

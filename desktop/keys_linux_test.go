package desktop

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/godbus/dbus/v5"

	"porchlight/desktop/menu"
	"porchlight/desktop/ui"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
	"porchlight/test/programs"
)

const (
	portalPath  = dbus.ObjectPath("/org/freedesktop/portal/desktop")
	sessionPath = portalPath + "/session/1/s"
	shortcuts   = "org.freedesktop.portal.GlobalShortcuts"
)

// portal is a small one, on a bus of its own.
type portal struct {
	conn    *dbus.Conn
	refuses atomic.Bool // the owner does, when they are asked
	bound   chan string // triggers that were wished for
}

func (p *portal) respond(options map[string]dbus.Variant, sender dbus.Sender, code uint32, results map[string]dbus.Variant) (dbus.ObjectPath, *dbus.Error) {
	name := strings.ReplaceAll(strings.TrimPrefix(string(sender), ":"), ".", "_")
	handle := portalPath + "/request/" + dbus.ObjectPath(name+"/"+options["handle_token"].Value().(string))
	if err := p.conn.Emit(handle, "org.freedesktop.portal.Request.Response", code, results); err != nil {
		return "", dbus.MakeFailedError(err)
	}
	return handle, nil
}

func (p *portal) CreateSession(options map[string]dbus.Variant, sender dbus.Sender) (dbus.ObjectPath, *dbus.Error) {
	return p.respond(options, sender, 0, map[string]dbus.Variant{"session_handle": dbus.MakeVariant(string(sessionPath))})
}

type wanted struct {
	ID    string
	About map[string]dbus.Variant
}

func (p *portal) BindShortcuts(_ dbus.ObjectPath, all []wanted, _ string, options map[string]dbus.Variant, sender dbus.Sender) (dbus.ObjectPath, *dbus.Error) {
	p.bound <- all[0].About["preferred_trigger"].Value().(string)
	if p.refuses.Load() {
		return p.respond(options, sender, 1, map[string]dbus.Variant{})
	}
	given := []wanted{{all[0].ID, map[string]dbus.Variant{"trigger_description": dbus.MakeVariant("Ctrl+Alt+P")}}}
	return p.respond(options, sender, 0, map[string]dbus.Variant{"shortcuts": dbus.MakeVariant(given)})
}

func (p *portal) Get(string, string) (dbus.Variant, *dbus.Error) {
	return dbus.MakeVariant(uint32(1)), nil
}

func (p *portal) press(t *testing.T, session dbus.ObjectPath, id string) {
	t.Helper()
	programs.Must(t, p.conn.Emit(portalPath, shortcuts+".Activated", session, id, uint64(1), map[string]dbus.Variant{}))
}

// startBus has the process find a bus of its own, and nothing on it.
func startBus(t *testing.T) *dbus.Conn {
	t.Helper()
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		t.Skip("dbus-daemon is not installed")
	}
	dir := t.TempDir()
	address, config := "unix:path="+dir+"/bus", filepath.Join(dir, "bus.conf")
	programs.Must(t, os.WriteFile(config, []byte(`<busconfig><type>session</type><listen>`+address+`</listen><auth>EXTERNAL</auth><policy context="default"><allow send_destination="*" eavesdrop="true"/><allow receive_sender="*"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`), 0o600))
	programs.Begin(t, exec.Command("dbus-daemon", "--nofork", "--config-file="+config))
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	var conn *dbus.Conn
	programs.Eventually(t, "the bus is there", func() bool {
		var err error
		conn, err = dbus.Connect(address)
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	return conn
}

// shownWindow is there, and says when it is told to look where the owner wants to be.
type shownWindow struct {
	notedWindow
}

func (shownWindow) Show() bool { return true }

// withKeys is an app that shows its menu's line of the palette.
func withKeys(ctx context.Context, t *testing.T, dir string, lines chan string) (*app, desk, chan string) {
	t.Helper()
	prefer := preferencesIn(t, dir)
	events := make(chan string, 4)
	a := &app{ctx: ctx, log: slog.New(slog.DiscardHandler), settings: prefer.settings, window: shownWindow{notedWindow{events: events}}, atLogin: func() bool { return false }, state: owner.Everyday(), known: true}
	a.show = func(m menu.Menu) {
		i := slices.IndexFunc(m.Lines, func(l menu.Line) bool { return l.Do.View == verbs.ViewFind })
		lines <- m.Lines[i].Text
	}
	a.desk = desk{prefer, a}
	return a, a.desk, events
}

// Keys that the desktop gives open the palette: where it offers any, when the owner wants
// them, and until they do not.
func TestKeysFromAnywhere(t *testing.T) {
	conn, dir, lines := startBus(t), t.TempDir(), make(chan string, 16)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	a, d, events := withKeys(ctx, t, dir, lines)
	expect := func(want ui.Shortcut) {
		t.Helper()
		if got := d.Preferences().Shortcut; got != want {
			t.Errorf("it is %+v, want %+v", got, want)
		}
	}
	expect(ui.Shortcut{})
	p := &portal{conn: conn, bound: make(chan string, 8)}
	p.refuses.Store(true)
	programs.Must(t, conn.Export(p, portalPath, shortcuts), conn.Export(p, portalPath, "org.freedesktop.DBus.Properties"))
	programs.Got(conn.RequestName("org.freedesktop.portal.Desktop", 0))(t)
	expect(ui.Shortcut{Offered: true})

	if err := d.Shortcut(true); err == nil || err.Error() != "The desktop did not give Porchlight a shortcut." {
		t.Errorf("refused: %v", err)
	}
	if trigger := <-p.bound; trigger != "CTRL+ALT+p" {
		t.Errorf("it wished for %q", trigger)
	}
	expect(ui.Shortcut{Offered: true})
	if a.settings.get().Shortcut {
		t.Error("what was refused is wanted at the next start")
	}
	<-lines

	p.refuses.Store(false)
	programs.Must(t, d.Shortcut(true))
	expect(ui.Shortcut{Offered: true, On: true, Keys: "Ctrl+Alt+P"})
	if line := <-lines; line != "Find or do… (Ctrl+Alt+P)" {
		t.Errorf("the menu says %q", line)
	}
	p.press(t, sessionPath, "find")
	if name, place := <-events, a.wanted(); name != "show" || place != (ui.Place{View: verbs.ViewFind}) {
		t.Errorf("the page is told %q, for %+v", name, place)
	}
	programs.Must(t, d.Shortcut(false))
	expect(ui.Shortcut{Offered: true})
	if line := <-lines; line != "Find or do…" {
		t.Errorf("afterwards the menu says %q", line)
	}
	if a.settings.get().Shortcut {
		t.Error("wanted at the next start")
	}

	programs.Must(t, d.Shortcut(true))
	end()
	programs.Eventually(t, "the keys are given back", func() bool { return a.keys.given.Load() == nil })
	again, stop := context.WithCancel(t.Context())
	defer stop()
	b, d, events := withKeys(again, t, dir, lines)
	if !b.settings.get().Shortcut {
		t.Fatal("not wanted any more after a start")
	}
	programs.Must(t, b.listen(true))
	expect(ui.Shortcut{Offered: true, On: true, Keys: "Ctrl+Alt+P"})
	p.press(t, sessionPath+"x", "find") // somebody else's
	p.press(t, sessionPath, "other")
	p.press(t, sessionPath, "find")
	programs.Must(t, conn.Emit(sessionPath, "org.freedesktop.portal.Session.Closed", map[string]dbus.Variant{}))
	programs.Eventually(t, "the desktop took them back", func() bool { return !d.Preferences().Shortcut.On })
	if len(events) != 1 {
		t.Errorf("%d presses for one of its keys", len(events))
	}
}

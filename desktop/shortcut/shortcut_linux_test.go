package shortcut

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/godbus/dbus/v5"

	"porchlight/test/programs"
)

// desktop is a small portal on a bus of its own.
type desktop struct {
	conn    *dbus.Conn
	refuses bool
	bound   chan string // triggers that were wished for
}

func (d *desktop) respond(options map[string]dbus.Variant, sender dbus.Sender, results map[string]dbus.Variant) (dbus.ObjectPath, *dbus.Error) {
	name := []byte(string(sender)[1:])
	for i, b := range name {
		if b == '.' {
			name[i] = '_'
		}
	}
	handle := dbus.ObjectPath("/org/freedesktop/portal/desktop/request/" + string(name) + "/" + options["handle_token"].Value().(string))
	code := uint32(0)
	if d.refuses {
		code = 1
	}
	return handle, asDBus(d.conn.Emit(handle, request+".Response", code, results))
}

func asDBus(err error) *dbus.Error {
	if err == nil {
		return nil
	}
	return dbus.MakeFailedError(err)
}

const sessionPath = "/org/freedesktop/portal/desktop/session/1/s"

func (d *desktop) CreateSession(options map[string]dbus.Variant, sender dbus.Sender) (dbus.ObjectPath, *dbus.Error) {
	return d.respond(options, sender, map[string]dbus.Variant{"session_handle": dbus.MakeVariant(sessionPath)})
}

func (d *desktop) BindShortcuts(_ dbus.ObjectPath, wanted []struct {
	ID    string
	About map[string]dbus.Variant
}, _ string, options map[string]dbus.Variant, sender dbus.Sender) (dbus.ObjectPath, *dbus.Error) {
	handle, err := d.respond(options, sender, map[string]dbus.Variant{})
	d.bound <- wanted[0].About["preferred_trigger"].Value().(string)
	return handle, err
}

func (d *desktop) press(t *testing.T, session, id string) {
	t.Helper()
	programs.Must(t, d.conn.Emit(path, shortcuts+".Activated", dbus.ObjectPath(session), id, uint64(1), map[string]dbus.Variant{}))
}

func TestPortal(t *testing.T) {
	dir := t.TempDir()
	socket := "unix:path=" + dir + "/bus"
	config := filepath.Join(dir, "bus.conf")
	programs.Must(t, os.WriteFile(config, []byte(`<busconfig><type>session</type><listen>`+socket+`</listen><auth>EXTERNAL</auth><policy context="default"><allow send_destination="*" eavesdrop="true"/><allow receive_sender="*"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`), 0o600))
	cmd := exec.Command("dbus-daemon", "--nofork", "--config-file="+config)
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		t.Skip("dbus-daemon is not installed")
	}
	programs.Begin(t, cmd)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", socket)
	var conn *dbus.Conn
	programs.Eventually(t, "the bus is there", func() (ok bool) {
		var err error
		conn, err = dbus.Connect(socket)
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	if Offered() {
		t.Error("offered without a portal")
	}
	d := &desktop{conn: conn, bound: make(chan string, 2)}
	programs.Must(t, conn.Export(d, path, shortcuts), conn.Export(properties{}, path, "org.freedesktop.DBus.Properties"))
	programs.Got(conn.RequestName(portal, 0))(t)
	if !Offered() {
		t.Fatal("not offered where the portal is")
	}
	ctx, cancel := context.WithCancel(t.Context())
	pressed, ended := make(chan struct{}, 4), make(chan error, 1)
	go func() { ended <- Listen(ctx, "Find or do", func() { pressed <- struct{}{} }) }()
	if trigger := <-d.bound; trigger != "CTRL+ALT+p" {
		t.Errorf("it wished for %q", trigger)
	}
	d.press(t, sessionPath+"x", "find") // somebody else's
	d.press(t, sessionPath, "other")
	d.press(t, sessionPath, "find")
	<-pressed
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(pressed) != 0 {
		t.Error("pressed for what was none of its keys")
	}
	d.refuses = true
	if err := Listen(t.Context(), "Find or do", func() {}); !errors.Is(err, errRefused) {
		t.Errorf("refused: %v", err)
	}
}

type properties struct{}

func (properties) Get(string, string) (dbus.Variant, *dbus.Error) {
	return dbus.MakeVariant(uint32(1)), nil
}

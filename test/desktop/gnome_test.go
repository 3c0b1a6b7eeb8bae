//go:build rig

package desktop

import (
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/color"
	"os/exec"
	"slices"
	"testing"

	"github.com/godbus/dbus/v5"

	"porchlight/test/programs"
)

// startGNOME has GNOME Shell in a window of the screen, with the extension that shows icons.
// Programs that are started from now on draw there.
func startGNOME(s *session) {
	s.startShell("['ubuntu-appindicators@ubuntu.com']")
	s.waitName(watcher, true)
}

func (s *session) startShell(extensions string) {
	s.t.Helper()
	s.service("ca.desrt.dconf")
	programs.Must(s.t, s.bus.BusObject().Call("org.freedesktop.DBus.ReloadConfig", 0).Err)
	s.sets(
		[]string{"org.gnome.shell", "enabled-extensions", extensions},
		[]string{"org.gnome.shell", "welcome-dialog-last-shown-version", "'99'"},
	)
	// It asks the system's bus for much, and goes on without; there must be one.
	cmd := exec.Command("env", "DBUS_SYSTEM_BUS_ADDRESS="+s.busAddress(), "MUTTER_DEBUG_DUMMY_MODE_SPECS=1000x640",
		"gnome-shell", "--nested", "--wayland", "--no-x11", "--wayland-display=porchlight-gnome")
	s.running["gnome-shell"] = s.run(cmd)
	s.waitName("org.gnome.Shell", true)
	shell := s.bus.Object("org.gnome.Shell", "/org/gnome/Shell")
	for _, active := range []bool{true, false} { // it begins with its overview, which would have the keys
		s.eventually(fmt.Sprintf("the overview is there: %v", active), func() error {
			was, err := shell.GetProperty("org.gnome.Shell.OverviewActive")
			if err != nil || was.Value() == active {
				return err
			}
			if !active {
				err = shell.SetProperty("org.gnome.Shell.OverviewActive", dbus.MakeVariant(false))
			}
			return cmp.Or(err, errors.New("not yet"))
		})
	}
	s.env = append(s.env, "WAYLAND_DISPLAY=porchlight-gnome", "GDK_BACKEND=wayland", "XDG_CURRENT_DESKTOP=GNOME")
}

// changes does something, and waits until the screen is another where the shell draws menus.
func (s *session) changes(do func()) {
	s.t.Helper()
	drawn := func() (all []color.Color) {
		img := s.screen()
		for x := 820; x < 1060; x++ {
			for y := 90; y < 480; y++ {
				all = append(all, img.At(x, y))
			}
		}
		return all
	}
	before := drawn()
	do()
	s.eventually("the menu is another", func() error {
		if slices.Equal(before, drawn()) {
			return errors.New("it is not")
		}
		return nil
	})
}

// GNOME Shell with AppIndicator shows the lamp and the whole menu, of which a line can be
// pressed.
func TestGNOME(t *testing.T) {
	needsPanels(t)
	t.Parallel()
	s := newSession(t, desk{noPanel: true})
	startGNOME(s)
	p := s.launch()
	p.publish("notes", "Notes", webApp(t, "notes"))
	p.trayShows("Notes wants an address > Approve", true)
	p.trayShows("Notes wants an address > Approve", true)
	p.trayStays()
	s.changes(func() {
		s.clickMark("the mark of what waits", image.Rect(900, 0, 1100, 200), 2, 2, "1") // it draws the icon small
	})
	for _, key := range []string{"Down", "Down", "Right"} {
		s.changes(func() { p.keys(key) })
	}
	s.shot("menu")
	p.keys("Return")
	p.is("notes", "live")
}

// The owner's whole story on GNOME, by keys.
func TestGNOMEStory(t *testing.T) {
	needsPanels(t)
	ownersStory(t, desk{panel: startGNOME}, true)
}

// GNOME alone shows no icons: the window says what would, answers, and comes to the front for a
// second start, to which nobody gave a token.
func TestGNOMEWithoutTray(t *testing.T) {
	needsPanels(t)
	t.Parallel()
	s := newSession(t, desk{noPanel: true})
	s.startShell("[]")
	p := s.launchDriven()
	p.pageThere()
	p.eventually("it says what brings the lamp", func() error { return p.has("gnome-shell-extension-appindicator") })
	p.publish("notes", "Notes", webApp(t, "notes"))
	p.notified("Notes wants an address")
	p.enter(p.named("button", "Approve"))
	p.is("notes", "live")
	p.shot("window")
	p.inFront(true)
	s.run(exec.Command(s.helper()))
	p.inFront(false)
	s.shot("behind")
	p.again()
	p.inFront(true)
	s.shot("again")
}

// inFront waits until the page has the focus of the desktop, or has it no more.
func (p *page) inFront(want bool) {
	p.t.Helper()
	p.eventually("the window is in front", func() error {
		var is bool
		err := webDriver("POST", p.session+"/execute/sync", map[string]any{"script": `return document.hasFocus()`, "args": []string{}}, &is)
		if err == nil && is != want {
			err = errors.New("its page says otherwise")
		}
		return err
	})
}

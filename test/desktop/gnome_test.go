//go:build rig

package desktop

import (
	"errors"
	"image"
	"image/color"
	"os"
	"os/exec"
	"slices"
	"testing"

	"porchlight/test/programs"
)

// startGNOME has GNOME Shell in a window of the screen, with the extension that shows icons.
func startGNOME(s *session) {
	s.service("ca.desrt.dconf")
	programs.Must(s.t, s.bus.BusObject().Call("org.freedesktop.DBus.ReloadConfig", 0).Err)
	s.sets(
		[]string{"org.gnome.shell", "enabled-extensions", "['ubuntu-appindicators@ubuntu.com']"},
		[]string{"org.gnome.shell", "welcome-dialog-last-shown-version", "'99'"},
	)
	// It asks the system's bus for much, and goes on without; there must be one.
	cmd := exec.Command("env", "DBUS_SYSTEM_BUS_ADDRESS="+s.busAddress(), "MUTTER_DEBUG_DUMMY_MODE_SPECS=1000x640",
		"gnome-shell", "--nested", "--wayland", "--no-x11", "--wayland-display=porchlight-gnome")
	s.running["gnome-shell"] = s.run(cmd)
	s.waitName(watcher, true)
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
	if os.Getenv("PORCHLIGHT_PANELS") == "" {
		t.Skip("it needs panels that other tests do not: make test-panels installs and runs them")
	}
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

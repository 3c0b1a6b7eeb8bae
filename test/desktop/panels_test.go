//go:build rig

package desktop

import (
	"image"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"porchlight/test/programs"
)

// panels show the tray's icon beside xfce4-panel, with menus of other libraries: LXQt's is
// Qt's, and MATE reads by code of its own. Both call Activate for a left click.
var panels = map[string]func(*session){"lxqt-panel": startLXQt, "mate-panel": startMATE}

func startLXQt(s *session) {
	programs.Must(s.t, os.MkdirAll(filepath.Join(s.dir, "home/.config/lxqt"), 0o700))
	s.write(filepath.Join(s.dir, "home/.config/lxqt/panel.conf"), `[General]
panels=panel1

[panel1]
plugins=statusnotifier, worldclock
position=Top
panelSize=32
iconSize=22
width=100
width-percent=true

[statusnotifier]
type=statusnotifier

[worldclock]
type=worldclock
`)
	s.spawn("lxqt-panel")
}

// startMATE lets the bus start what the panel needs: its applets and its settings.
func startMATE(s *session) {
	for _, name := range []string{"ca.desrt.dconf", "org.mate.panel.applet.NotificationAreaAppletFactory"} {
		service := name + ".service"
		s.write(filepath.Join(s.dir, "services", service), string(programs.Got(os.ReadFile(filepath.Join("/usr/share/dbus-1/services", service)))(s.t)))
	}
	programs.Must(s.t, s.bus.BusObject().Call("org.freedesktop.DBus.ReloadConfig", 0).Err)
	s.spawn("mate-panel")
}

// The owner's whole story by mouse, in another panel than Xfce's, by as many clicks.
func TestPanelsStory(t *testing.T) {
	if os.Getenv("PORCHLIGHT_PANELS") == "" {
		t.Skip("it needs panels that other tests do not: make test-panels installs and runs them")
	}
	ownersStory(t, desk{panel: startMATE}, false)
}

// The owner's story works in other panels, too: each line is there and can be pressed, after
// the panel was held, and after it was started again; a left click opens the window.
func TestPanels(t *testing.T) {
	if os.Getenv("PORCHLIGHT_PANELS") == "" {
		t.Skip("it needs panels that other tests do not: make test-panels installs and runs them")
	}
	for program, start := range panels {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, desk{noPanel: true})
			start(s)
			s.waitName(watcher, true)
			p := s.launch()
			s.trayShows("No app is on", true)
			p.approveByMouse("notes", "Notes")
			panel := s.panelPID()
			programs.Must(t, syscall.Kill(panel, syscall.SIGSTOP))
			p.publish("held", "Held", webApp(t, "held"))
			time.Sleep(2 * time.Second) // for so long it does not run
			programs.Must(t, syscall.Kill(panel, syscall.SIGCONT))
			p.approveByMouse("held", "Held")
			s.kill(program)
			s.waitName(watcher, false)
			start(s)
			s.waitName(watcher, true)
			p.approveByMouse("photos", "Photos")
			p.publish("asks", "Asks", webApp(t, "asks"))
			s.windowShows(false)
			s.clickMark("the mark of what waits", image.Rect(0, 0, 1100, 34), 3, 3, "1")
			s.windowShows(true)
		})
	}
}

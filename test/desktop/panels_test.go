//go:build rig

package desktop

import (
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"porchlight/test/programs"
)

// panels show the tray's icon beside xfce4-panel, with menus of other libraries: LXQt's is
// Qt's, and MATE reads by code of its own. Both call Activate for a left click.
var panels = map[string]func(*session){"lxqt-panel": startLXQt, "mate-panel": startMATE}

const indicators = "/usr/libexec/ayatana-indicator-application/ayatana-indicator-application-service"

// startIndicators puts Ayatana's indicators in MATE's panel, as Ubuntu MATE does. They know
// no pixmaps, and a left click opens the menu.
func startIndicators(s *session) {
	for _, name := range []string{"ca.desrt.dconf", "org.mate.panel.applet.IndicatorAppletCompleteFactory"} {
		s.service(name)
	}
	programs.Must(s.t, s.bus.BusObject().Call("org.freedesktop.DBus.ReloadConfig", 0).Err)
	s.sets(
		[]string{"org.mate.panel", "toplevel-id-list", "['top']"},
		[]string{"org.mate.panel", "object-id-list", "['indicators']"},
		[]string{"org.mate.panel.toplevel:/org/mate/panel/toplevels/top/", "orientation", "top"},
		[]string{"org.mate.panel.object:/org/mate/panel/objects/indicators/", "object-type", "applet"},
		[]string{"org.mate.panel.object:/org/mate/panel/objects/indicators/", "applet-iid", "IndicatorAppletCompleteFactory::IndicatorAppletComplete"},
		[]string{"org.mate.panel.object:/org/mate/panel/objects/indicators/", "toplevel-id", "top"},
	)
	s.spawn(indicators)
	s.spawn("mate-panel")
}

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
		s.service(name)
	}
	programs.Must(s.t, s.bus.BusObject().Call("org.freedesktop.DBus.ReloadConfig", 0).Err)
	s.spawn("mate-panel")
}

// sets changes settings of the desktop: schema, key and value.
func (s *session) sets(all ...[]string) {
	s.t.Helper()
	for _, set := range all {
		cmd := exec.Command("gsettings", append([]string{"set"}, set...)...)
		cmd.Env = s.env
		programs.Got(cmd.Output())(s.t)
	}
}

// service lets the bus start a program, as it may on a computer.
func (s *session) service(name string) {
	service := name + ".service"
	s.write(filepath.Join(s.dir, "services", service), string(programs.Got(os.ReadFile(filepath.Join("/usr/share/dbus-1/services", service)))(s.t)))
}

// Panels that draw an icon by its name alone show the lamp, too, each of its states anew,
// and leave no file behind.
func TestIndicators(t *testing.T) {
	needsPanels(t)
	t.Parallel()
	s := newSession(t, desk{panel: startIndicators})
	p := s.launch()
	s.trayShows("No app is on", true)
	approve := func(name, label string) {
		p.publish(name, label, webApp(t, name))
		p.trayShows(label+" wants an address > Approve", true)
		p.trayStays()
		s.clickMark("the mark of what waits", image.Rect(0, 0, 1100, 34), 3, 3, "1") // this panel's way to the menu
		p.menuOpen(1)
		p.keys("Down", "Down", "Right")
		p.menuOpen(2)
		p.shot(name + "-menu")
		p.keys("Return")
		p.is(name, "live")
	}
	approve("notes", "Notes")
	s.kill(indicators)
	s.waitName(watcher, false)
	s.spawn(indicators)
	s.waitName(watcher, true)
	approve("photos", "Photos")
	icons := filepath.Join(s.dir, "run/porchlight-icons-*")
	if kept := programs.Got(filepath.Glob(icons))(t); len(kept) != 1 {
		t.Errorf("the icons are in %q", kept)
	}
	p.quit()
	if kept := programs.Got(filepath.Glob(icons))(t); len(kept) != 0 {
		t.Errorf("left behind: %q", kept)
	}
}

// needsPanels leaves a test to make test-panels.
func needsPanels(t *testing.T) {
	t.Helper()
	if os.Getenv("PORCHLIGHT_PANELS") == "" {
		t.Skip("it needs panels that other tests do not: make test-panels installs and runs them")
	}
}

// The owner's whole story by mouse, in another panel than Xfce's, by as many clicks.
func TestPanelsStory(t *testing.T) {
	needsPanels(t)
	ownersStory(t, desk{panel: startMATE}, false)
}

// The owner's story works in other panels, too: each line is there and can be pressed, after
// the panel was held, and after it was started again; a left click opens the window.
func TestPanels(t *testing.T) {
	needsPanels(t)
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

//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"image"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestPictures makes the pictures of the documentation from the real program.
// screenshots.sh calls it, with a network and a login name of its own: what the
// pictures show is what an owner called maya sees, and no port is taken.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PORCHLIGHT_PICTURES")
	if dir == "" {
		t.Skip("make screenshots runs this one")
	}
	t.Run("overview", func(t *testing.T) {
		p := newGallery(t, desk{tidy: true})
		p.trayClick("Open Porchlight")
		p.windowShows(true)
		p.request()
		p.arrange(24, 140, 760, 520)
		p.openTray()
		p.walk("Paperless wants an address")
		p.picture(filepath.Join(dir, "overview.png"), image.Rect(0, 0, 1100, 700))
	})
	for _, opts := range []desk{{tidy: true, fine: true}, {tidy: true, fine: true, dark: true}} {
		name := "window-light"
		if opts.dark {
			name = "window-dark"
		}
		t.Run(name, func(t *testing.T) {
			p := newGallery(t, opts)
			p.trayClick("Open Porchlight")
			p.windowShows(true)
			p.request()
			p.arrange(100, 80, 900, 560)
			p.picture(filepath.Join(dir, name+".png"), image.Rect(84, 62, 1018, 688))
		})
	}
	for _, opts := range []desk{{tidy: true, fine: true}, {tidy: true, fine: true, dark: true}} {
		theme := "light"
		if opts.dark {
			theme = "dark"
		}
		t.Run("views-"+theme, func(t *testing.T) {
			p := newFullHouse(t, opts)
			p.openWindow()
			p.arrange(100, 80, 900, 560)
			for _, view := range []struct{ name, file string }{
				{"People", "people"}, {"Connected apps", "connected-apps"}, {"Activity", "activity"}, {"Settings", "settings"}, {"Apps", "app"},
			} {
				if view.name == "Settings" && opts.dark {
					continue
				}
				p.view(view.name)
				switch view.name {
				case "People":
					p.pressButton("Apps for " + carla)
				case "Apps":
					p.pressButton("Notes")
				}
				p.see("main .card")
				p.picture(filepath.Join(dir, view.file+"-"+theme+".png"), image.Rect(84, 62, 1018, 688))
			}
		})
	}
	t.Run("welcome", func(t *testing.T) {
		s := newSession(t, desk{tidy: true, fine: true})
		p := s.drive("127.0.0.1:8765")
		p.openWindow()
		p.named("button", "Try it")
		p.arrange(100, 80, 900, 560)
		p.picture(filepath.Join(dir, "welcome.png"), image.Rect(84, 62, 1018, 688))
	})
	t.Run("tray", func(t *testing.T) {
		p := newGallery(t, desk{tidy: true})
		p.openTray()
		p.walk("Notes", "Revoke")
		p.picture(filepath.Join(dir, "tray.png"), image.Rect(300, 0, 1100, 440))
	})
}

// newGallery is a desktop with two apps on and one that waits.
func newGallery(t *testing.T, opts desk) *program {
	t.Helper()
	s := newSession(t, opts)
	p := &program{session: s, data: filepath.Join(s.dir, "data"), api: "127.0.0.1:8765", exited: make(chan struct{})}
	p.start([]string{"--data", p.data})
	p.serving()
	for _, app := range []struct {
		name, label string
		port        int
	}{{"notes", "Notes", 3000}, {"photos", "Photos", 2342}} {
		p.python(app.port)
		p.publish(app.name, app.label, app.port)
		p.trayClick(app.label + " wants an address > Approve")
		p.is(app.name, "live")
	}
	p.python(8010)
	p.publish("paperless", "Paperless", 8010)
	p.trayShows("Paperless wants an address", true)
	p.notified("Paperless wants an address") // and off the screen
	return p
}

// python is an app anybody can start.
func (p *program) python(port int) {
	p.t.Helper()
	cmd := exec.Command("python3", "-m", "http.server", "--bind", "127.0.0.1", strconv.Itoa(port))
	cmd.Dir = filepath.Join(p.dir, "services")
	p.run(cmd, fmt.Sprintf("python-%d", port))
	p.eventually("python listens", func() error {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// arrange puts the window somewhere; lengths are those of the coarse screen.
func (s *session) arrange(x, y, width, height int) {
	s.t.Helper()
	id, px := s.windows()[0], s.scale()
	s.mustTool("xdotool", "windowsize", "--sync", id, strconv.Itoa(px*width), strconv.Itoa(px*height), "windowmove", id, strconv.Itoa(px*x), strconv.Itoa(px*y))
}

// openTray clicks the icon, which wears the mark of what waits.
func (s *session) openTray() {
	s.t.Helper()
	s.clickAmber("the mark of what waits", image.Rect(0, 0, 1100, 34), 3, 3, "3")
	s.menuOpen(1)
}

// walk opens the submenus of the open tray menu one in the other, by what they
// say: how many lines stand above them is counted as the panel draws them.
func (s *session) walk(path ...string) {
	s.t.Helper()
	_, here, err := s.trayMenu()
	if err != nil {
		s.t.Fatal(err)
	}
	for depth, label := range path {
		above, found := 0, false
		for _, line := range here.kids {
			if found = line.flag("visible") && line.label() == label; found {
				here = line
				break
			}
			// The keyboard passes over what cannot be chosen.
			if kind, _ := line.props["type"].Value().(string); kind != "separator" && line.flag("visible") && line.flag("enabled") {
				above++
			}
		}
		if !found {
			s.t.Fatalf("there is no %q in\n%s", label, strings.Join(here.lines(0), "\n"))
		}
		if depth == 0 {
			above++ // nothing is chosen at first; in a submenu its first line is
		}
		s.down(above)
		s.keys("Right")
		s.menuOpen(depth + 2)
	}
}

// picture takes one once the screen has come to rest: nothing changes by itself
// in a picture worth taking.
func (s *session) picture(file string, part image.Rectangle) {
	s.t.Helper()
	px := s.scale()
	s.mustTool("xdotool", "mousemove", strconv.Itoa(px*550), strconv.Itoa(px*690))
	crop := fmt.Sprintf("%dx%d+%d+%d", px*part.Dx(), px*part.Dy(), px*part.Min.X, px*part.Min.Y)
	var last string
	s.eventually("the screen is at rest", func() error {
		s.mustTool("import", "-window", "root", "-crop", crop, "+repage", "-strip", "+dither", "-colors", "255", "-define", "png:compression-level=9", "PNG8:"+file)
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		was := last
		if last = string(raw); last != was {
			return errors.New("it changed")
		}
		return nil
	})
	info, err := os.Stat(file)
	if err != nil {
		s.t.Fatal(err)
	}
	if info.Size() > int64(px)*60<<10 {
		s.t.Errorf("%s is %d KiB, more than a page should carry", file, info.Size()>>10)
	}
	_ = os.Chmod(file, 0o644)
}

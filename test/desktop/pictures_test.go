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

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
)

// forDocuments is where the pictures of the documentation go; empty where none are made.
func forDocuments() string { return os.Getenv("PORCHLIGHT_PICTURES") }

// TestPictures makes pictures of the real program: those of the documentation, and more
// for people to look at. screenshots.sh calls it, with a network and a login name of its
// own: what the pictures show is what an owner called maya sees, and no port is taken.
func TestPictures(t *testing.T) {
	dir, gallery := forDocuments(), os.Getenv("PORCHLIGHT_GALLERY")
	if dir == "" || gallery == "" {
		t.Skip("make screenshots runs this one")
	}
	for _, look := range looks(gallery) {
		t.Run(look.name, func(t *testing.T) {
			t.Run("overview", func(t *testing.T) {
				if look.fine {
					t.Skip("it shows the whole of the coarse screen")
				}
				p := newGallery(t, look.desk)
				p.trayClick("Open Porchlight")
				p.windowShows(true)
				p.request()
				p.arrange(24, 140, 760, 520)
				p.openTray()
				p.walk("Paperless wants an address")
				p.mustTool("dunstctl", "close-all") // it comes again when it is known whose the port is
				p.picture(filepath.Join(dir, look.file("overview")), image.Rect(0, 0, 1100, 700))
			})
			t.Run("window", func(t *testing.T) {
				p := newGallery(t, look.desk)
				p.trayClick("Open Porchlight")
				p.windowShows(true)
				p.request()
				p.window(look, "window")
			})
			t.Run("views", func(t *testing.T) { newFullHouse(t, look.desk).views(look) })
			t.Run("welcome", func(t *testing.T) {
				first := look.desk
				first.first = true
				s := newSession(t, first)
				s.alone()
				p := s.drive("127.0.0.1:8765")
				p.pageThere()
				p.named("button", "Start")
				p.window(look, "first-start")
				p.pressButton("Start")
				p.named("button", "Trust it")
				p.window(look, "first-trust")
				p.pressButton("Not now")
				p.python(3000)
				p.named("button", "Later")
				p.window(look, "first-share")
			})
		})
	}
	t.Run("tray", func(t *testing.T) {
		p := newGallery(t, desk{tidy: true})
		p.openTray()
		p.walk("Notes", "Revoke")
		p.picture(filepath.Join(gallery, "tray.png"), image.Rect(300, 0, 1100, 440))
	})
	for _, panel := range []struct {
		name  string
		light bool
	}{{"light", true}, {"dark", false}} {
		t.Run("on a "+panel.name+" panel", func(t *testing.T) {
			p := newGallery(t, desk{tidy: true, light: panel.light})
			p.openTray()
			p.picture(filepath.Join(gallery, "panel-"+panel.name+".png"), image.Rect(600, 0, 1100, 440))
		})
	}
	t.Run("sixty apps", func(t *testing.T) { sixty(t, gallery) })
}

// sixty is a desktop with so many apps, called as people call theirs, and a hundred
// people.
func sixty(t *testing.T, gallery string) {
	s := newSession(t, desk{tidy: true})
	p := s.atHome()
	s.trayShows("No app is on", true)
	owner, ctx := p.ownerTier(), t.Context()
	labels := []string{"Notes", "مذكراتي اليومية", "לוח השנה", "Quarterly planning board for the whole northern region", "日記", "मेरी डायरी", "👩‍🚀 Orbit", "Ledger"}
	for i := range 60 {
		name, label := fmt.Sprintf("app-%d", i), labels[i%len(labels)]
		if i >= len(labels) {
			label = fmt.Sprintf("%s %d", label, i)
		}
		p.publish(name, label, 20000+i)
		programs.Got(owner.Approve(ctx, name))(t)
	}
	p.publish("paperless", "Paperless", 8010)
	p.trayShows("Paperless wants an address", true)
	for i := range 2 {
		var emails []string
		for j := range agentapi.MaxInvited {
			emails = append(emails, fmt.Sprintf("person-%d@example.com", i*agentapi.MaxInvited+j))
		}
		all := programs.Got(owner.InviteAll(ctx, agentapi.InvitationsRequest{Emails: emails, Apps: labels[:3]}))(t)
		if refused := all.Invitations[len(all.Invitations)-1].Error; refused != "" {
			t.Log(refused) // what one owner may invite in a day
			break
		}
	}
	p.openWindow()
	p.named("h2", "On")
	l := look{dir: gallery, theme: "light"}
	p.window(l, "sixty-apps")
	p.view("People")
	p.window(l, "sixty-people")
	p.openTray()
	p.picture(filepath.Join(gallery, "sixty-tray.png"), image.Rect(300, 0, 1100, 700))
}

// look is a screen and a theme the window is drawn on.
type look struct {
	desk
	name, dir, theme string
}

// looks are the four of them, each with a directory of its own.
func looks(dir string) (all []look) {
	for _, fine := range []bool{true, false} {
		for _, theme := range []string{"light", "dark"} {
			l := look{desk: desk{tidy: true, fine: fine, dark: theme == "dark"}, name: theme + "-2x", theme: theme}
			if !fine {
				l.name = theme + "-1x"
			}
			l.dir = filepath.Join(dir, l.name)
			all = append(all, l)
		}
	}
	return all
}

// file is what a picture of the documentation is called: the light one has the plain name.
func (d desk) file(name string) string {
	if d.dark {
		name += "-dark"
	}
	return name + ".png"
}

// window takes a picture of the window as it is.
func (s *session) window(l look, file string) {
	s.t.Helper()
	dir := l.dir
	if l.fine && (file == "people" || file == "app") {
		dir = forDocuments() // README shows them
	}
	programs.Must(s.t, os.MkdirAll(dir, 0o755))
	s.arrange(100, 80, 900, 560)
	s.undisturbed(func() { s.picture(filepath.Join(dir, file+"-"+l.theme+".png"), ofWindow) })
}

// What pictures show of the screen; lengths are those of the coarse one.
var (
	ofWindow = image.Rect(84, 62, 1018, 688)
	ofMenu   = image.Rect(420, 0, 1100, 540)
	ofNotes  = image.Rect(620, 540, 1100, 700)
)

// atHome has maya's program run as pictures show it: connected to a server with a domain.
func (s *session) atHome() *page {
	s.t.Helper()
	s.alone()
	control := s.startPlane()
	p := s.drive("127.0.0.1:8765")
	control.connect(p.program, "maya")
	return p
}

// storyBegins has the story's program run. On the computer alone that is all; where pictures
// are made it is maya's, and then gets connected, which it says how.
func (s *session) storyBegins() (p *page, connects func()) {
	s.t.Helper()
	if forDocuments() == "" {
		return s.launchDriven(), func() {}
	}
	s.alone()
	control := s.startPlane()
	p = s.drive("127.0.0.1:8765")
	return p, func() {
		waiting := control.code(p.program)
		p.named("h1", "Confirm this computer")
		(&owner{page: p}).show("01-connect", ofWindow)
		control.confirm(p.program, "maya", waiting)
		p.named("h1", "Leave the porch light on")
		list := filepath.Join(s.dir, "home/.pki/nssdb") // what Chromium trusts
		programs.Must(s.t, os.MkdirAll(list, 0o700))
		s.mustTool("certutil", "-N", "--empty-password", "-d", "sql:"+list)
		for _, file := range []string{rig.Authority(control.Data), rig.Own(p.data)} {
			s.mustTool("certutil", "-A", "-d", "sql:"+list, "-n", file, "-t", "C,,", "-i", file)
		}
	}
}

// show keeps a moment of the story: as a picture of the documentation where those are
// made, and otherwise for people to look at.
func (p *owner) show(name string, part image.Rectangle) {
	p.t.Helper()
	if forDocuments() == "" {
		p.shot(name)
		return
	}
	p.eventually("no toast is there", func() error {
		var left int
		err := webDriver("POST", p.session+"/execute/sync", map[string]any{"args": []string{}, "script": `const said = [...document.querySelectorAll('.toast')]
			for (const toast of said) toast.querySelector('button:last-of-type').click()
			return said.length`}, &left)
		if err == nil && left > 0 {
			err = errors.New("there is one")
		}
		return err
	})
	file := filepath.Join(forDocuments(), p.opts.file("story-"+name))
	if part != ofWindow {
		p.picture(file, part)
		return
	}
	p.arrange(100, 80, 900, 560)
	p.undisturbed(func() { p.picture(file, part) })
}

// undisturbed does something while no notification is on the screen.
func (s *session) undisturbed(do func()) {
	s.t.Helper()
	s.mustTool("dunstctl", "close-all") // what was told while the scene was set
	s.mustTool("dunstctl", "set-paused", "true")
	do()
	s.mustTool("dunstctl", "set-paused", "false")
}

// onPhone keeps what the friend sees.
func (p *owner) onPhone(phone *tab, name string) {
	p.t.Helper()
	dir := forDocuments()
	if dir == "" {
		phone.shot("phone-" + name)
		return
	}
	file := filepath.Join(dir, p.opts.file("story-"+name))
	phone.saves(file)
	programs.Must(p.t, os.Chmod(file, 0o644))
	p.mustTool("convert", file, "-resize", "390x", "-crop", "390x600+0+0", "+repage", "-strip", "+dither", "-colors", "255", "PNG8:"+file)
}

// views takes a picture of every view.
func (p fullHouse) views(l look) {
	p.t.Helper()
	p.openWindow()
	p.arrange(100, 80, 900, 560)
	for _, view := range []struct{ name, file string }{
		{"People", "people"}, {"Connected apps", "connected-apps"}, {"Activity", "activity"},
		{"Settings", "settings"}, {"Apps", "app"},
	} {
		goAway := func() {}
		if view.name == "Activity" {
			goAway = p.come()
		}
		p.view(view.name)
		switch view.name {
		case "Activity":
			p.named("button", "Disconnect "+carla)
			p.named("button", "Disconnect Pocket Notes")
		case "People":
			p.pressButton("Apps for " + carla)
		case "Apps":
			p.pressButton("Notes")
		}
		p.see("main .card")
		p.window(l, view.file)
		goAway()
	}
	p.press(".foot .state")
	p.named("h1", "Health")
	p.window(l, "health")
	p.view("Apps")
	p.pressButton("Add an app…")
	p.see("main .card")
	p.window(l, "add-app")
	p.view("People")
	p.pressButton("Invite")
	p.window(l, "invite")
}

// newGallery is a desktop with two apps on and one that waits.
func newGallery(t *testing.T, opts desk) *program {
	t.Helper()
	p := newSession(t, opts).atHome().program
	for _, app := range []struct {
		name, label string
		port        int
	}{{"notes", "Notes", 3000}, {"photos", "Photos", 2342}} {
		p.python(app.port)
		p.approved(app.name, app.label, app.port)
	}
	p.python(8010)
	p.publish("paperless", "Paperless", 8010)
	p.trayShows("Paperless wants an address", true)
	p.notified("Paperless wants an address") // and off the screen
	return p
}

// alone waits until the program of the scene before is gone: they all have the
// address that is in every owner's pictures.
func (s *session) alone() {
	s.t.Helper()
	s.eventually("nobody has the loopback API's address", func() error {
		conn, err := net.Dial("tcp", "127.0.0.1:8765")
		if err != nil {
			return nil
		}
		return errors.Join(errors.New("somebody has"), conn.Close())
	})
}

// python is an app anybody can start.
func (p *program) python(port int) {
	p.t.Helper()
	cmd := exec.Command("python3", "-m", "http.server", "--bind", "127.0.0.1", strconv.Itoa(port))
	cmd.Dir = filepath.Join(p.dir, "services")
	p.run(cmd)
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
	id, px := s.shown(), s.scale()
	s.mustTool("xdotool", "windowsize", "--sync", id, strconv.Itoa(px*width), strconv.Itoa(px*height), "windowmove", id, strconv.Itoa(px*x), strconv.Itoa(px*y))
}

// openTray clicks the icon, once its mark or flame is drawn.
func (s *session) openTray() {
	s.t.Helper()
	s.clickMark("the mark of what waits", image.Rect(0, 0, 1100, 34), 3, 3, "3")
	s.menuOpen(1)
}

// walk opens the submenus of the open tray menu one in the other, by what they
// say: how many lines stand above them is counted as the panel draws them.
func (s *session) walk(path ...string) {
	s.t.Helper()
	_, here, err := s.trayMenu()
	programs.Must(s.t, err)
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
	info := programs.Got(os.Stat(file))(s.t)
	if info.Size() > int64(px)*60<<10 {
		s.t.Errorf("%s is %d KiB, more than a page should carry", file, info.Size()>>10)
	}
	_ = os.Chmod(file, 0o644)
}

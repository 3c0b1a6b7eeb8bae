//go:build rig

package desktop

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// startSway has a Wayland compositor in a window of the X screen, so that mouse and keys are
// the same; programs started from now on draw there.
func (s *session) startSway() {
	s.t.Helper()
	run := filepath.Join(s.dir, "wayland")
	programs.Must(s.t, os.Mkdir(run, 0o777))
	programs.Must(s.t, os.Chmod(run, 0o777))
	conf := filepath.Join(run, "sway.conf")
	ipc := filepath.Join(run, "sway.sock")
	programs.Must(s.t, os.WriteFile(conf, []byte("output * bg #58626b solid_color\nfocus_on_window_activation focus\n"), 0o644))
	args := []string{"sway", "-c", conf}
	if os.Getuid() == 0 { // it refuses to run as root
		programs.Must(s.t, os.Chmod(s.dir, 0o755))
		args = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, args...)
	}
	cmd := exec.Command("env", append([]string{"XDG_RUNTIME_DIR=" + run, "HOME=" + run, "WLR_BACKENDS=x11", "WLR_RENDERER=pixman", "SWAYSOCK=" + ipc}, args...)...)
	s.running["sway"] = s.run(cmd)
	s.eventually("a Wayland compositor", func() error {
		found, _ := filepath.Glob(filepath.Join(run, "wayland-?"))
		if len(found) == 0 {
			return errors.New("no socket")
		}
		s.env = append(s.env, "WAYLAND_DISPLAY="+found[0], "GDK_BACKEND=wayland", "SWAYSOCK="+ipc)
		return nil
	})
}

// draws waits until something light is drawn at a spot of the screen, which was dark.
func (s *session) draws(spot image.Point) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("something is drawn at %v", spot), func() error {
		if r, g, b, _ := s.screen().At(spot.X, spot.Y).RGBA(); min(r, g, b)>>8 < 0xe0 {
			return errors.New("nothing is")
		}
		return nil
	})
}

// On Wayland waybar shows the icon and the whole menu, of which a line can be pressed.
func TestPanelOnWayland(t *testing.T) {
	t.Parallel()
	needsPanels(t)
	s := newSession(t, desk{noPanel: true})
	s.startSway()
	conf := filepath.Join(s.dir, "waybar.json")
	s.write(conf, `{"layer": "top", "position": "top", "height": 32, "modules-left": ["tray"], "tray": {"icon-size": 22}}`)
	s.spawn("waybar", "-c", conf)
	s.waitName(watcher, true)
	p := s.launch()
	p.publish("notes", "Notes", webApp(t, "notes"))
	p.trayShows("Notes wants an address > Approve", true)
	p.trayStays()
	// waybar takes no keys; where its menus draw their lines is known by their height.
	s.clickMark("the mark of what waits", image.Rect(0, 0, 1100, 200), 3, 3, "1")
	s.draws(image.Pt(150, 200))
	s.mustTool("xdotool", "mousemove", "150", "113")
	s.draws(image.Pt(270, 125))
	s.shot("menu")
	s.mustTool("xdotool", "mousemove", "300", "113", "mousemove", "300", "164")
	s.shot("approve")
	s.mouse(image.Pt(300, 164), "1")
	p.is("notes", "live")
	p.trayClick("Notes > Copy link") // with no window of ours in front
	s.pastes(p.address("notes"))
	if said := s.running["waybar"].Stderr(); strings.Contains(said, "LIBDBUSMENU-GTK") {
		t.Errorf("the panel does not draw all of the menu:\n%s", said)
	}
}

// On Wayland a window may come to the front only for whom the desktop gave a token: a second start
// hands on its own. What is in front copies without help.
func TestFocusOnWayland(t *testing.T) {
	t.Parallel()
	if os.Getenv("PORCHLIGHT_PANELS") == "" {
		t.Skip("it needs a compositor that other tests do not: make test-panels installs and runs it")
	}
	s := newSession(t, desk{noPanel: true})
	s.startSway()
	p := s.launch()
	s.focused("Porchlight") // without a tray it opens by itself
	var spot image.Point
	s.eventually("the window shows a command", func() error {
		var ok bool
		if spot, ok = find(s.screen(), sunken, image.Rect(290, 300, 1100, 700), 300, 4); !ok {
			return errors.New("nothing to copy is there")
		}
		return nil
	})
	s.mouse(spot, "1")
	s.keys("Tab", "Return") // from the command to its Copy
	s.pastes("porchlight publish notes --label Notes --port 3000 --api " + p.api)
	other := s.run(exec.Command(s.helper()))
	s.focused("focused")
	said := regexp.MustCompile(`token (\S+)\n`)
	s.eventually("a press gives a token", func() error { // one before it is drawn is lost
		s.mouse(image.Pt(825, 350), "1") // in its half of the screen
		if !said.MatchString(other.Stdout()) {
			return errors.New("it says " + other.Stdout())
		}
		return nil
	})
	s.env = append(s.env, "XDG_ACTIVATION_TOKEN="+said.FindStringSubmatch(other.Stdout())[1])
	p.again()
	s.focused("Porchlight")
	s.shot("focused")
}

// helper builds a window that prints a token for whoever a press in it starts.
func (s *session) helper() (program string) {
	s.t.Helper()
	program = filepath.Join(s.dir, "focused")
	if out, err := exec.Command("sh", "-c", `gcc -o "$0" testdata/focused.c $(pkg-config --cflags --libs gtk+-3.0)`, program).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	return program
}

// pastes waits until a text is on the compositor's clipboard.
func (s *session) pastes(want string) {
	s.t.Helper()
	s.eventually("the clipboard has "+want, func() error {
		got, err := s.tool("wl-paste", "--no-newline")
		if err == nil && got != want {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
}

// focused waits until the window of a title has the focus of the compositor.
func (s *session) focused(title string) {
	s.t.Helper()
	type node struct {
		Name     string
		Focused  bool
		Nodes    []node
		Floating []node `json:"floating_nodes"`
	}
	var find func(node) string
	find = func(n node) string {
		if n.Focused {
			return n.Name
		}
		for _, below := range append(n.Nodes, n.Floating...) {
			if name := find(below); name != "" {
				return name
			}
		}
		return ""
	}
	s.eventually(title+" has the focus", func() error {
		var tree node
		out, err := s.tool("swaymsg", "--type", "get_tree", "--raw")
		if err == nil {
			err = json.Unmarshal([]byte(out), &tree)
		}
		if has := find(tree); err == nil && has != title {
			err = fmt.Errorf("%q has it", has)
		}
		return err
	})
}

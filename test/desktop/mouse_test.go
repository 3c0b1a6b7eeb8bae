//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"slices"
	"strconv"
	"strings"

	"porchlight/test/programs"
)

// amber is the one colour that asks to be pressed: the tray's mark of what
// waits, and the window's primary button.
func amber(c color.Color) bool {
	r, g, b, _ := c.RGBA()
	r, g, b = r>>8, g>>8, b>>8
	return r > 225 && g > 140 && g < 195 && b < 95
}

// sunken is the light window's colour of what can be copied.
func sunken(c color.Color) bool {
	r, g, b, _ := c.RGBA()
	return r>>8 == 0xf5 && g>>8 == 0xf3 && b>>8 == 0xef
}

// findAmber returns the middle of the first place, from the top, where amber
// fills at least w × h pixels.
func findAmber(img image.Image, within image.Rectangle, w, h int) (image.Point, bool) {
	return find(img, amber, within, w, h)
}

func find(img image.Image, is func(color.Color) bool, within image.Rectangle, w, h int) (image.Point, bool) {
	within = within.Intersect(img.Bounds())
	for y := within.Min.Y; y+h <= within.Max.Y; y++ {
		for x := within.Min.X; x+w <= within.Max.X; x++ {
			if is(img.At(x, y)) && is(img.At(x+w-1, y)) && is(img.At(x, y+h-1)) && is(img.At(x+w/2, y)) {
				return image.Pt(x+w/2, y+h/2), true
			}
		}
	}
	return image.Point{}, false
}

// mark is the amber of the tray's mark, in the drawings for panels dark and light and
// in the outline.
func mark(c color.Color) bool {
	r, g, b, _ := c.RGBA()
	r, g, b = r>>8, g>>8, b>>8
	return r > 195 && g > 105 && g < 195 && b < 95
}

// clickMark moves the real pointer to the tray's mark and clicks.
func (s *session) clickMark(what string, within image.Rectangle, w, h int, button string) {
	s.t.Helper()
	var spot image.Point
	s.eventually(what+" is on the screen", func() error {
		p, ok := find(s.screen(), mark, within, w, h)
		if !ok {
			return errors.New("no amber there")
		}
		spot = p
		return nil
	})
	s.mouse(spot, button)
}

func (s *session) mouse(spot image.Point, button string) {
	s.t.Helper()
	s.clicks++
	s.mustTool("xdotool", "mousemove", strconv.Itoa(spot.X), strconv.Itoa(spot.Y), "click", button)
}

func (s *session) keys(keys ...string) {
	s.t.Helper()
	for _, together := range keys {
		s.pressed += 1 + strings.Count(together, "+") // Ctrl is one, too
	}
	s.mustTool("xdotool", append([]string{"key", "--delay", "60"}, keys...)...)
}

// menuOpen waits until the panel draws so many popup menus, one below the other.
// One with nothing in it does not count: that is how panels draw what they lost.
func (s *session) menuOpen(want int) (open []string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d popup menus", want), func() error {
		ids, err := s.search("--class", "[Xx]fce4-panel|[Ww]rapper|lxqt-panel|mate-panel|notification-area|mate-indicator")
		if err != nil {
			return err
		}
		open = nil
		for _, id := range ids {
			kind, _ := s.tool("xprop", "-id", id, "_NET_WM_WINDOW_TYPE")
			if (strings.Contains(kind, "POPUP_MENU") || strings.Contains(kind, "DROPDOWN_MENU")) && s.box(id).Dy() > 30 {
				open = append(open, id)
			}
		}
		if len(open) != want {
			return fmt.Errorf("%d are open", len(open))
		}
		return nil
	})
	return open
}

// box is where a window is; empty where it is gone.
func (s *session) box(id string) image.Rectangle {
	out, _ := s.tool("xdotool", "getwindowgeometry", "--shell", id)
	var window, x, y, width, height int
	_, _ = fmt.Sscanf(out, "WINDOW=%d\nX=%d\nY=%d\nWIDTH=%d\nHEIGHT=%d", &window, &x, &y, &width, &height)
	return image.Rect(x, y, x+width, y+height)
}

// clickTray clicks the lamp and then a line of its menu, over the submenus that the pointer
// opens on its way. GTK's panels tell nobody where a line is: their lines have one height,
// and their rules one pixel.
func (s *session) clickTray(path ...string) {
	s.t.Helper()
	s.trayShows(strings.Join(path, " > "), true)
	s.trayStays()
	s.openTray()
	_, here, err := s.trayMenu()
	programs.Must(s.t, err)
	var before []string
	for depth, label := range path {
		open := s.menuOpen(depth + 1)
		box := s.box(open[slices.IndexFunc(open, func(id string) bool { return !slices.Contains(before, id) })])
		before = open
		var lines, above, rules, rulesAbove int
		for _, line := range here.kids {
			if !line.flag("visible") {
				continue
			}
			if line.label() == label {
				above, rulesAbove, here = lines, rules, line
			}
			if kind, _ := line.props["type"].Value().(string); kind == "separator" {
				rules++
			} else {
				lines++
			}
		}
		if here.label() != label {
			s.t.Fatalf("there is no %q in\n%s", label, strings.Join(here.lines(0), "\n"))
		}
		const edge = 4
		height := (box.Dy() - 2*edge - rules) / lines
		spot := image.Pt(box.Min.X+box.Dx()/2, box.Min.Y+edge+above*height+rulesAbove+height/2)
		if depth+1 == len(path) {
			s.mouse(spot, "1")
			return
		}
		s.mustTool("xdotool", "mousemove", strconv.Itoa(spot.X), strconv.Itoa(spot.Y))
	}
}

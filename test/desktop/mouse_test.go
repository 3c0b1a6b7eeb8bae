//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"strconv"
	"strings"
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
	s.mustTool("xdotool", "mousemove", strconv.Itoa(spot.X), strconv.Itoa(spot.Y), "click", button)
}

func (s *session) keys(keys ...string) {
	s.t.Helper()
	s.mustTool("xdotool", append([]string{"key", "--delay", "60"}, keys...)...)
}

// menuOpen waits until the panel draws so many popup menus, one below the other.
// One with nothing in it does not count: that is how panels draw what they lost.
func (s *session) menuOpen(want int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d popup menus", want), func() error {
		ids, err := s.search("--class", "[Xx]fce4-panel|[Ww]rapper|lxqt-panel|mate-panel|notification-area")
		if err != nil {
			return err
		}
		n := 0
		for _, id := range ids {
			kind, _ := s.tool("xprop", "-id", id, "_NET_WM_WINDOW_TYPE")
			if (strings.Contains(kind, "POPUP_MENU") || strings.Contains(kind, "DROPDOWN_MENU")) && s.height(id) > 30 {
				n++
			}
		}
		if n != want {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
}

// height of a window in pixels; 0 where it is gone.
func (s *session) height(id string) (pixels int) {
	out, _ := s.tool("xdotool", "getwindowgeometry", "--shell", id)
	for _, word := range strings.Fields(out) {
		if text, ok := strings.CutPrefix(word, "HEIGHT="); ok {
			pixels, _ = strconv.Atoi(text)
		}
	}
	return pixels
}

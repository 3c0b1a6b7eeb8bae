//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"image"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"porchlight/test/programs"
)

// ownerSecret is what the keychain holds for Porchlight.
func (s *session) ownerSecret() string {
	s.t.Helper()
	var secret string
	s.eventually("the keychain has the owner secret", func() error {
		out, err := s.tool("secret-tool", "lookup", "service", "porchlight")
		secret = out
		return err
	})
	return secret
}

// position is where the window is.
func (s *session) position() image.Point {
	s.t.Helper()
	return s.box(s.shown()).Min
}

// closeWindow asks the window manager to close the window, as a taskbar does: a
// key of the keyboard is lost now and then by a display without one.
func (s *session) closeWindow() {
	s.t.Helper()
	id := programs.Got(strconv.ParseUint(s.shown(), 10, 32))(s.t)
	conn := programs.Got(xgb.NewConnDisplay(s.display()))(s.t)
	defer conn.Close()
	const name = "_NET_CLOSE_WINDOW"
	atom, err := xproto.InternAtom(conn, true, uint16(len(name)), name).Reply()
	if err == nil {
		const fromATaskbar = 2
		message := xproto.ClientMessageEvent{Format: 32, Window: xproto.Window(id), Type: atom.Atom,
			Data: xproto.ClientMessageDataUnionData32New([]uint32{0, fromATaskbar, 0, 0, 0})}
		root := xproto.Setup(conn).DefaultScreen(conn).Root
		err = xproto.SendEventChecked(conn, false, root,
			xproto.EventMaskSubstructureNotify|xproto.EventMaskSubstructureRedirect, string(message.Bytes())).Check()
	}
	programs.Must(s.t, err)
}

// approveInWindow presses the window's one amber button with the mouse. The page
// takes no press in the first moment it shows a button, so it may need two.
func (p *program) approveInWindow(name string) {
	p.t.Helper()
	var pressed time.Time
	p.eventually(name+" is approved in the window", func() error {
		status, answer, err := p.call("GET", "/publish/"+name, nil)
		if err != nil {
			return err
		}
		if answer["status"] == "live" {
			return nil
		}
		if time.Since(pressed) < time.Second {
			return errors.New("pressed; nothing came of it yet") // sooner, it would be a double click
		}
		if spot, ok := findAmber(p.screen(), image.Rect(0, 34, 1100, 700), 50, 12); ok {
			p.mouse(spot, "1")
			pressed = time.Now()
		}
		return fmt.Errorf("it is %v (%d)", answer["status"], status)
	})
}

// request waits until the window shows a request.
func (s *session) request() {
	s.t.Helper()
	s.eventually("the window shows a request", func() error {
		if _, ok := findAmber(s.screen(), image.Rect(0, 34, 1100, 700), 50, 12); !ok {
			return errors.New("no amber button")
		}
		return nil
	})
}

// answered waits until the window shows no button to press any more.
func (s *session) answered() {
	s.t.Helper()
	s.eventually("the request is off the window", func() error {
		if spot, ok := findAmber(s.screen(), image.Rect(0, 34, 1100, 700), 50, 12); ok {
			return fmt.Errorf("amber at %v", spot)
		}
		return nil
	})
}

// containing names a file below dir that holds text, or "".
func containing(t *testing.T, dir, text string) (found string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(raw), text) {
			found = path
		}
		return err
	})
	programs.Must(t, err)
	return found
}

// navigation is a request as a browser's address bar makes it.
func navigation(t *testing.T, address string) *http.Request {
	t.Helper()
	req := programs.Got(http.NewRequest("GET", address, nil))(t)
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Sec-Fetch-Mode", "navigate")
	req.Header.Set("Sec-Fetch-Dest", "document")
	return req
}

var refresh = regexp.MustCompile(`content="0; url=([^"]+)"`)

// linkIn reads the page the browser was given.
func linkIn(t *testing.T, page string) string {
	t.Helper()
	info := programs.Got(os.Stat(page))(t)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("%s is %v", page, info.Mode())
	}
	raw := programs.Got(os.ReadFile(page))(t)
	m := refresh.FindStringSubmatch(string(raw))
	if m == nil {
		t.Fatalf("no link in %s", raw)
	}
	return strings.ReplaceAll(m[1], "&amp;", "&")
}

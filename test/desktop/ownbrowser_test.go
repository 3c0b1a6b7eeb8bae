//go:build rig

package desktop

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"porchlight/test/programs"
)

// Someone is here means somebody else: the owner's own tab changes nothing of the lamp and
// is cut off without a question. A browser that signs in as them is told once, and "That was not
// me" in the notification signs it out, with all of theirs. OW9.
func TestOwnersBrowserIsNobody(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{picks: "That was not me"})
	control := s.startPlane()
	p := s.launch()
	control.connect(p, "maya")
	notes := p.approved("notes", "Notes", streamApp(t))
	s.trayShows("On. Nobody here now", true)
	flame := s.lamp()
	s.mustTool("dunstctl", "close-all")

	own := p.guest()
	page, err := own.SignIn(t.Context(), notes, maya, p.inbox())
	if err != nil || page.Status != http.StatusOK {
		t.Fatalf("signing in as the owner: %+v, %v", page, err)
	}
	open := openStream(t, own.Do, notes, nil)
	s.displays("1")
	s.shot("told")
	// Whoever comes and goes meanwhile shows that the owner's stream was counted by then.
	bob := p.member(guest, "Notes")
	p.answers(bob, notes, http.StatusOK)
	his := openStream(t, bob.Do, notes, nil)
	s.trayShows(guest+": Notes", true)
	s.trayShows("On. 1 here now", true)
	s.trayShows(maya+": Notes", false)
	if bytes.Equal(s.lamp(), flame) {
		t.Error("with somebody here the lamp is as without")
	}
	his.ends(t, "Disconnect", s.trayClick(guest+": Notes > Disconnect, they may come back"))
	s.trayShows("On. Nobody here now", true)
	s.trayShows("Here now", false)
	s.eventually("the lamp is as before", func() error {
		if !bytes.Equal(s.lamp(), flame) {
			return errors.New("it is another")
		}
		return nil
	})
	open.goesOn(t, "disconnecting somebody else")
	s.shot("nobody")

	if n := s.timesTold("A browser at 127.0.0.1 signed in as you"); n != 1 {
		t.Errorf("told %d times", n)
	}
	another := p.guest()
	if page, err := another.SignIn(t.Context(), notes, maya, p.inbox()); err != nil || page.Status != http.StatusOK {
		t.Fatalf("signing in once more: %+v, %v", page, err)
	}
	theirs := openStream(t, another.Do, notes, nil)
	s.displays("1")
	s.shot("another")
	pressed := time.Now()
	s.mustTool("dunstctl", "context") // lists the buttons and has That was not me picked
	theirs.ends(t, "That was not me", pressed)
	if page, err := another.Open(t.Context(), notes); err == nil && strings.Contains(page.Body, "hello") {
		t.Errorf("signed out, it opens: %d %q", page.Status, page.Body)
	}
	if page, err := own.SignIn(t.Context(), notes, maya, p.inbox()); err != nil || page.Status != http.StatusOK { // theirs ended with it
		t.Fatalf("signing in after that: %+v, %v", page, err)
	}
	open = openStream(t, own.Do, notes, nil)

	_, menu, err := s.trayMenu()
	programs.Must(t, err)
	if line, ok := menu.find([]string{"Quit Porchlight"}); !ok || len(line.lines(0)) > 0 {
		t.Errorf("quitting asks:\n%s", strings.Join(line.lines(0), "\n"))
	}
	open.ends(t, "Quit", s.trayClick("Quit Porchlight"))
	p.ends(0)
}

// lamp is what the panel draws of the app.
func (s *session) lamp() (drawn []byte) {
	s.t.Helper()
	name, path, _ := strings.Cut(s.trayItems()[0], "/")
	v := programs.Got(s.bus.Object(name, dbus.ObjectPath("/"+path)).GetProperty("org.kde.StatusNotifierItem.IconPixmap"))(s.t)
	for _, one := range v.Value().([][]any) {
		drawn = append(drawn, one[2].([]byte)...)
	}
	return drawn
}

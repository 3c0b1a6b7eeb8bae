//go:build rig

package desktop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"net"

	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// streamApp answers, and at /stream begins an answer that never ends.
func streamApp(t *testing.T) (port int) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s\n", r.Header.Get("X-Service-Email"))
		if r.URL.Path == "/stream" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().(*net.TCPAddr).Port
}

// stream is an answer under way at a visitor's socket.
type stream struct{ ended chan time.Time }

// openStream opens one with a request of the caller's, and waits for its first
// line.
func openStream(t *testing.T, do func(*http.Request) (*http.Response, error), address string, header http.Header) stream {
	t.Helper()
	req := programs.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/stream", nil))(t)
	for name := range header {
		req.Header.Set(name, header.Get(name))
	}
	resp := programs.Got(do(req))(t)
	body := bufio.NewReader(resp.Body)
	if line, err := body.ReadString('\n'); err != nil || !strings.HasPrefix(line, "hello ") {
		t.Fatalf("the stream begins with %q, %v (%s)", line, err, resp.Status)
	}
	s := stream{make(chan time.Time, 1)}
	go func() {
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, body)
		s.ended <- time.Now()
	}()
	return s
}

// ends waits until the stream ends and prints how long after the click that was.
func (s stream) ends(t *testing.T, what string, clicked time.Time) {
	t.Helper()
	select {
	case end := <-s.ended:
		t.Logf("click on %s to the end at the visitor's socket: %d ms", what, end.Sub(clicked).Milliseconds())
	case <-time.After(patience):
		t.Fatalf("%s closed nothing", what)
	}
}

// goesOn checks that what happened has not ended the stream.
func (s stream) goesOn(t *testing.T, what string) {
	t.Helper()
	select {
	case <-s.ended:
		t.Errorf("%s closed what had nothing to do with it", what)
	default:
	}
}

// approved has the owner approve an app in the tray.
func (p *program) approved(name, label string, port int) (address string) {
	p.t.Helper()
	p.publish(name, label, port)
	p.trayClick(label + " wants an address > Approve")
	p.is(name, "live")
	return p.address(name)
}

// shut checks that a visitor who was in is out, at once and without a word of
// the app's.
func shut(t *testing.T, v *visitor.Visitor, address string) {
	t.Helper()
	page, err := v.Open(t.Context(), address)
	if err == nil && (page.Status == http.StatusOK || strings.Contains(page.Body, "hello")) {
		t.Errorf("%s still answers: %d %q", address, page.Status, page.Body)
	}
}

// The owner keeps people out from the menu, and takes an app back; what counts is
// what a visitor's socket sees.
func TestW4_PauseAndRevokeFromTheTray(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	notes := p.approved("notes", "Notes", streamApp(t))
	photos := p.approved("photos", "Photos", streamApp(t))
	bob := p.member("bob@example.com", "Notes", "Photos")
	s.notified("An invitation was accepted", "bob@example.com opened Notes for the first time")
	p.answers(bob, notes, http.StatusOK)
	p.answers(bob, photos, http.StatusOK)
	s.trayShows("Notes > Who may open it > bob@example.com", true)

	t.Run("pause and resume", func(t *testing.T) {
		open, elsewhere := openStream(t, bob.Do, notes, nil), openStream(t, bob.Do, photos, nil)
		s.trayShows("On. 1 here now", true)
		s.trayShows("bob@example.com: Notes and Photos > Disconnect, they may come back", true)
		open.ends(t, "Pause", s.trayClick("Notes: 1 here now > Pause"))
		shut(t, bob, notes)
		s.noteSays("Notes is paused", "^1 connection closed")
		elsewhere.goesOn(t, "pausing another app")
		p.isStill("notes", "live")
		s.trayClick("Notes: paused > Resume")
		p.answers(bob, notes, http.StatusOK)
	})

	t.Run("go dark and light up", func(t *testing.T) {
		open := openStream(t, bob.Do, notes, nil)
		open.ends(t, "Go dark", s.trayClick("Go dark"))
		shut(t, bob, notes)
		shut(t, bob, photos)
		s.trayShows("Light up again", true)
		s.notified("Dark: nobody can open anything")
		s.trayClick("Light up again")
		p.answers(bob, notes, http.StatusOK)
		p.answers(bob, photos, http.StatusOK)
		s.trayShows("On. Nobody here now", true)
	})

	t.Run("revoke", func(t *testing.T) {
		open := openStream(t, bob.Do, notes, nil)
		s.trayShows("Notes: 1 here now", true)
		open.ends(t, "Revoke", s.trayClick("Notes: 1 here now > Revoke > Yes, revoke Notes"))
		shut(t, bob, notes)
		p.is("notes", "")
		s.noteSays("Notes is revoked", "^1 connection closed")
		p.answers(bob, photos, http.StatusOK)
	})

	t.Run("start at login", func(t *testing.T) {
		s.trayClick("Start at login")
		s.eventually("a desktop entry starts it", func() error {
			out, err := s.tool("sh", "-c", "cat $XDG_CONFIG_HOME/autostart/*.desktop")
			if err == nil && !strings.Contains(out, binary(t)) {
				err = errors.New(out)
			}
			return err
		})
		s.eventually("the line is ticked", func() error {
			_, root, err := s.trayMenu()
			if err != nil {
				return err
			}
			n, _ := root.find([]string{"Start at login"})
			if state, _ := n.props["toggle-state"].Value().(int32); state != 1 {
				return fmt.Errorf("it is %v", n.props)
			}
			return nil
		})
	})
}

//go:build rig

package desktop

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// The owner sees in the tray which remote clients hold access, is told of a
// new one, and takes it away with a click; the client's open answer ends.
func TestW6_ClientsFromTheTray(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	p.serving()
	notes := p.approved("notes", "Notes", streamApp(t))
	s.trayShows("Connected apps", false)

	bearer := http.Header{"Authorization": {"Bearer " + p.connectClient("Pocket Notes")}}
	remote := p.guest()
	asks := func() (status int) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, notes, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = bearer.Clone()
		resp, err := remote.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := asks(); got != http.StatusOK {
		t.Fatalf("the client gets %d", got)
	}
	if body := s.notified("Pocket Notes was let in"); !strings.HasPrefix(body, "You allowed it") {
		t.Errorf("the notification says %q", body)
	}
	open := openStream(t, remote.Do, notes, bearer)
	account, err := p.ownerTier().Account(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clicked := s.trayClick("Connected apps > Pocket Notes, as " + account.Email + " > Yes, revoke Pocket Notes")
	open.over(t, "Revoke of a connected app", clicked)
	s.eventually("the client is shut out", func() error {
		if got := asks(); got != http.StatusUnauthorized {
			return errors.New(http.StatusText(got))
		}
		return nil
	})
	if body := s.notified("Pocket Notes is let in no more"); !strings.HasPrefix(body, "1 connection closed, ") {
		t.Errorf("the notification says %q", body)
	}
	s.trayShows("Connected apps", false)
}

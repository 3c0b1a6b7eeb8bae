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
	notes := p.approved("notes", "Notes", streamApp(t))
	s.trayShows("Connected apps", false)

	token := p.connectClient("Pocket Notes")
	if got := p.asClient(token, notes); !strings.HasPrefix(got, "200 ") {
		t.Fatalf("the client gets %s", got)
	}
	s.told("Pocket Notes was let in", "^You allowed it")
	open := openStream(t, p.guest().Do, notes, http.Header{"Authorization": {"Bearer " + token}})
	account, err := p.ownerTier().Account(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clicked := s.trayClick("Connected apps > Pocket Notes, as " + account.Email + " > Yes, revoke Pocket Notes")
	open.over(t, "Revoke of a connected app", clicked)
	s.eventually("the client is shut out", func() error {
		if got := p.asClient(token, notes); !strings.HasPrefix(got, "401 ") {
			return errors.New(got)
		}
		return nil
	})
	s.told("Pocket Notes is let in no more", "^1 connection closed, ")
	s.trayShows("Connected apps", false)
}

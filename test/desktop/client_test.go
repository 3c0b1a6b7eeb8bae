//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
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
	s.noteSays("Pocket Notes was let in, and has just opened an app", "^You allowed it") // one note for both
	open := openStream(t, p.guest().Do, notes, http.Header{"Authorization": {"Bearer " + token}})
	account := programs.Got(p.ownerTier().Account(t.Context()))(t)
	clicked := s.trayClick("Connected apps > Pocket Notes, as " + account.Email + " > Yes, revoke Pocket Notes")
	open.ends(t, "Revoke of a connected app", clicked)
	s.eventually("the client is shut out", func() error {
		if got := p.asClient(token, notes); !strings.HasPrefix(got, "401 ") {
			return errors.New(got)
		}
		return nil
	})
	s.noteSays("Pocket Notes is let in no more", "^1 connection closed")
	s.trayShows("Connected apps", false)
}

// Weakness: the owner saw a client only where a web origin came with it that no other had.
// Checked: one with a scheme of its own, as phone apps have, one that a second person lets
// in too, and a second one of an origin are each told and listed by themselves, in menu,
// command line and "here now" by name, and the menu cuts one off.
func TestW6_EveryClientIsToldAndListed(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	notes := p.approved("notes", "Notes", streamApp(t))
	bob := p.member(guest, "Notes")
	const own, web = "com.example.native:/cb", "https://pocket.example/cb"
	zebra, pocket := p.newClient("Zebra", own), p.newClient("Pocket", web)
	p.let(bob, guest, pocket)
	s.noteSays("Pocket was let in", "^"+guest+" allowed it")

	maya, account := p.guest(), ""
	if a, err := p.ownerTier().Account(t.Context()); err == nil {
		account = a.Email
	}
	token := p.let(bob, guest, zebra)
	open := openStream(t, p.guest().Do, notes, http.Header{"Authorization": {"Bearer " + token}})
	s.noteSays("Zebra was let in, and has just opened an app", "^"+guest+" allowed it")
	s.trayShows("Connected apps > Zebra, as "+guest, true)
	s.trayShows(guest+", through Zebra: Notes", true)
	s.mustTool("dunstctl", "close-all")
	p.let(maya, account, zebra)
	s.trayShows("Connected apps > Zebra, as "+account, true)
	p.let(maya, account, p.newClient("Second", web))
	s.noteSays("Second was let in", "^You allowed it")

	again := p.let(bob, guest, zebra) // on a second device: one row, and by its name
	second := openStream(t, p.guest().Do, notes, http.Header{"Authorization": {"Bearer " + again}})
	s.trayShows(guest+", through Zebra: Notes", true)
	var lines []struct{ Kind, By string }
	s.eventually("the timeline names the client", func() error {
		p.ask(&lines, "activity")
		for _, line := range lines {
			if line.Kind == agentapi.ActivityClient && line.By == "Zebra" {
				return nil
			}
		}
		return fmt.Errorf("%+v", lines)
	})
	clicked := s.trayClick("Connected apps > Zebra, as " + guest + " > Yes, revoke Zebra")
	open.ends(t, "Revoke of a connected app", clicked)
	second.ends(t, "and of its second login", clicked)
	s.eventually("the client is shut out", func() error {
		if got := p.asClient(again, notes); !strings.HasPrefix(got, "401 ") {
			return errors.New(got)
		}
		return nil
	})
	s.trayShows("Connected apps > Zebra, as "+account, true)
	s.trayShows("Connected apps > Pocket, as "+guest, true)
}

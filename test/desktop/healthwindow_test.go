//go:build rig

package desktop

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The owner sees how everything does, cuts one person off by two clicks and takes it
// back, and a screen reader has a name for every control on the way.
func TestWindowTellsHowThingsAre(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{screenReader: true})
	data := filepath.Join(s.dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(data, "desktop.json"), `{"welcomed": true}`)
	p := s.launchDriven()
	address := p.approved("notes", "Notes", streamApp(t))
	bob := p.member(guest, "Notes")
	p.answers(bob, address, http.StatusOK)
	p.openWindow()
	p.named("h2", "On")
	named := p.namesEvery("More for")

	// A click anywhere in the row, and one that takes the app away.
	p.press(".row.opens .sub .cut")
	p.named("h2", "Who may open it")
	p.see(".health:not(.wrong) svg")
	named += p.namesEvery("Add people")
	open := openStream(t, bob.Do, address, nil)
	remove := p.named("button", "Remove "+guest+" from Notes")
	pressed := time.Now()
	p.press(remove)
	open.over(t, "the cross", pressed)
	p.answers(bob, address, http.StatusForbidden)
	p.shot("app-removed")
	p.press(p.named(".toast button", "Undo"))
	p.answers(bob, address, http.StatusOK)

	// The visit of this computer to itself went the whole way.
	p.press(".foot .state")
	p.named("h1", "Health")
	p.named(".title", "Your addresses work on this computer")
	named += p.namesEvery("Copy report")
	p.shot("health")
	if named < 30 {
		t.Errorf("a screen reader was told of %d controls", named)
	}
	p.keys("ctrl+w")
	p.windowShows(false)
	t.Logf("clicks: cut one person off 2; %d controls, each with a name", named)
}

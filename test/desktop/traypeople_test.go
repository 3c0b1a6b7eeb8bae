//go:build rig

package desktop

import (
	"net/http"
	"testing"
)

// The owner cuts one person off without the window, and takes it back. What came of
// each is asked of the visitor's browser. Clicks count the lamp.
func TestPeopleFromTheTray(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{picks: "Undo"})
	p := s.launch()
	notes := p.approved("notes", "Notes", streamApp(t))
	bob := p.member(guest, "Notes")
	p.answers(bob, notes, http.StatusOK)
	s.notified(guest + " opened Notes for the first time")

	t.Run("disconnect", func(t *testing.T) {
		open := openStream(t, bob.Do, notes, nil)
		open.over(t, "Disconnect", s.trayClick(guest+": Notes > Disconnect, they may come back"))
		s.told(guest+" is disconnected", "They may still open Notes")
	})
	t.Run("remove and undo", func(t *testing.T) {
		p.answers(bob, notes, http.StatusOK)
		open := openStream(t, bob.Do, notes, nil)
		s.mustTool("dunstctl", "close-all")
		open.over(t, "Remove", s.trayClick(guest+": Notes > Remove from everything"))
		shut(t, bob, notes)
		t.Logf("cut one person off: 2 clicks")
		s.displays("1")
		s.mustTool("dunstctl", "context") // lists the buttons and has Undo picked
		p.answers(bob, notes, http.StatusOK)
		s.notified("Undone")
	})
	t.Run("ticks", func(t *testing.T) {
		s.trayShows("Notes > Who may open it > "+guest, true)
		s.trayClick("Notes > Who may open it > " + guest)
		s.notified(guest + " can't open Notes any more")
		shut(t, bob, notes)
		s.trayClick("Notes > Who may open it > " + guest)
		s.notified(guest + " may open Notes")
		p.answers(bob, notes, http.StatusOK)
	})
	t.Run("quit says who is cut off", func(t *testing.T) {
		openStream(t, bob.Do, notes, nil)
		s.trayShows("Quit Porchlight > "+guest+": Notes", true)
		s.trayShows("Quit Porchlight > Yes, quit Porchlight", true)
	})
}

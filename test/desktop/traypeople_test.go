//go:build rig

package desktop

import (
	"errors"
	"net/http"
	"testing"

	"github.com/godbus/dbus/v5"

	"porchlight/test/programs"
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
	s.notified("An invitation was accepted", guest+" opened Notes for the first time")

	t.Run("disconnect", func(t *testing.T) {
		open := openStream(t, bob.Do, notes, nil)
		open.ends(t, "Disconnect", s.trayClick(guest+": Notes > Disconnect, they may come back"))
		s.noteSays(guest+" is disconnected", "They may still open Notes")
	})
	t.Run("remove and undo", func(t *testing.T) {
		p.answers(bob, notes, http.StatusOK)
		open := openStream(t, bob.Do, notes, nil)
		s.mustTool("dunstctl", "close-all")
		open.ends(t, "Remove", s.trayClick(guest+": Notes > Remove from everything"))
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
	t.Run("quit says who is cut off, and that it goes", func(t *testing.T) {
		open := openStream(t, bob.Do, notes, nil)
		s.trayShows("Quit Porchlight > "+guest+": Notes", true)
		said := s.menuChanges()
		open.ends(t, "Quit", s.trayClick("Quit Porchlight > Yes, quit Porchlight"))
		p.ends(0)
		s.eventually("the menu says that it goes", func() error {
			select {
			case label := <-said:
				if label == "Quitting…" {
					return nil
				}
				return errors.New("it says " + label)
			default:
				return errors.New("it says nothing more")
			}
		})
	})
}

// menuChanges tells what lines of the menu come to say from now on, as a panel hears it:
// also what a program says that has ended since.
func (s *session) menuChanges() <-chan string {
	s.t.Helper()
	programs.Must(s.t, s.bus.AddMatchSignal(dbus.WithMatchInterface("com.canonical.dbusmenu"), dbus.WithMatchMember("ItemsPropertiesUpdated")))
	signals, labels := make(chan *dbus.Signal, 1024), make(chan string, 1024)
	s.bus.Signal(signals)
	go func() {
		for signal := range signals { // closed with the connection
			var updated []struct {
				ID    int32
				Props map[string]dbus.Variant
			}
			if len(signal.Body) == 0 || dbus.Store(signal.Body[:1], &updated) != nil {
				continue
			}
			for _, one := range updated {
				label, _ := one.Props["label"].Value().(string)
				select {
				case labels <- label:
				default: // nobody reads them any more
				}
			}
		}
	}()
	return labels
}

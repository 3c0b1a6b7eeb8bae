//go:build rig

package desktop

import (
	"strings"
	"testing"
)

// The owner by the keyboard alone: an app opens by few keys, and what cuts everybody off is
// asked first, where Enter alone keeps things as they are.
func TestPaletteByKeyboard(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launchDriven()
	p.approved("notes", "Notes", webApp(t, "notes"))
	s.trayClick("Find or do…")
	p.pageThere()
	p.see("dialog [role=combobox]")
	p.shot("palette")
	s.keys("n", "o", "Return")
	if link := s.nextLink(0); !strings.Contains(link, "://notes.") {
		t.Errorf("opened %s", link)
	}
	(&owner{page: p, byKeys: true}).takes("opening an app", 0, 6, func() { s.keys("ctrl+k", "n", "o", "Return") })
	s.nextLink(1)

	goDark := []string{"ctrl+k", "g", "o", "space", "d", "a", "r", "k", "Return"}
	s.keys(goDark...)
	p.named("h2", "Go dark?")
	p.shot("palette-asks")
	s.keys("Return")
	p.named("h1", "Apps")
	s.trayShows("Go dark", true)
	s.keys(goDark...)
	p.named("h2", "Go dark?")
	s.keys("Tab", "Return")
	s.trayShows("Light up again", true)
}

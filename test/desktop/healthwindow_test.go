//go:build rig

package desktop

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// On a German desktop an owner starts for the first time, shares an app, is asked for
// another, sees how everything does, cuts one person off by two clicks and takes it
// back. Menu, notifications and window speak German, with nothing of English left, and
// a screen reader has a name for every control on the way.
func TestWindowTellsHowThingsAre(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{screenReader: true, first: true, language: "de_DE.UTF-8"})
	port := streamApp(t)
	p := german{page: s.launchDriven()}
	p.pageThere()
	p.page.named("h1", "Lassen Sie das Licht auf der Veranda an")
	p.reads("Anfangen")
	p.pressButton("Anfangen")
	p.reads("Vertrauen")
	p.pressButton("Jetzt nicht")
	p.page.named("h1", "Wählen Sie Ihre erste App")
	p.reads("Später")
	p.shot("german-first")
	p.pressButton("Später")
	p.page.named("h1", "Apps")
	s.trayShows("Keine App ist an", true)

	p.publish("notes", "Notes", port)
	s.notified("Notes bittet um eine Adresse")
	p.trayClick("Notes bittet um eine Adresse > Genehmigen")
	p.is("notes", "live")
	s.notified("Notes ist an")
	s.trayShows("An. Gerade ist niemand hier", true)
	address := p.address("notes")
	bob := p.member(guest, "Notes")
	p.answers(bob, address, http.StatusOK)
	s.notified("Eine Einladung wurde angenommen", guest+" hat Notes zum ersten Mal geöffnet") // one notice, however far it got
	p.page.named("h2", "An")
	p.reads("Mehr zu")

	p.pressButton("App hinzufügen…")
	p.page.named("h1", "App hinzufügen")
	p.reads("Port eingeben…")
	p.view("Personen")
	p.pressButton("Einladen")
	p.reads("Links kopieren…")
	p.shot("german-invite")
	p.view("Verlauf")
	p.reads("Exportieren…")
	p.shot("german-activity")
	p.view("Apps")
	if why := p.refused("window.go.ui.Shell.OpenURL('https://example.com')"); why != "Das ist keine Adresse von Porchlight." {
		t.Errorf("the page is told %q", why)
	}

	// A click anywhere in the row, and one that takes the app away.
	p.press(".row.opens .sub .cut")
	p.page.named("h2", "Wer sie öffnen darf")
	p.see(".health:not(.wrong) svg")
	p.reads("Hinzufügen…")
	open := openStream(t, bob.Do, address, nil)
	remove := p.page.named("button", guest+" aus Notes entfernen")
	pressed := time.Now()
	p.press(remove)
	open.ends(t, "the cross", pressed)
	p.answers(bob, address, http.StatusForbidden)
	p.holdToast()
	p.shot("app-removed")
	p.press(p.page.named(".toast button", "Rückgängig"))
	p.answers(bob, address, http.StatusOK)

	// The visit of this computer to itself went the whole way.
	p.press(".foot .state")
	p.page.named("h1", "Zustand")
	p.page.named(".title", "Ihre Adressen sind auf diesem Computer erreichbar")
	p.reads("Bericht kopieren")
	p.shot("health")
	p.trayClick("Licht aus")
	s.notified("Licht aus: niemand kann etwas öffnen")
	if p.controls < 60 {
		t.Errorf("a screen reader was told of %d controls", p.controls)
	}
	p.keys("ctrl+w")
	p.windowShows(false)
	t.Logf("clicks: cut one person off 2; %d controls, each with a name", p.controls)
}

// german is the page of a German desktop.
type german struct {
	*page
	controls int // that a screen reader was told of
}

// reads waits for a page with what on it, which names every control and says no English.
func (p *german) reads(what string) {
	p.t.Helper()
	p.controls += p.namesEvery(what)
	var said string
	err := webDriver("POST", p.session+"/execute/sync", map[string]any{"script": `
		const copy = document.body.cloneNode(true);
		for (const one of copy.querySelectorAll('pre, code, script, style, [id^=report]')) one.remove();
		return copy.textContent`, "args": []string{}}, &said)
	programs.Must(p.t, err)
	if found := english.FindAllString(said, -1); found != nil {
		p.t.Errorf("the page with %s says in English: %q in %s", what, found, strings.Join(strings.Fields(said), " "))
	}
}

// refused is why something that the page calls was not done.
func (p *german) refused(call string) (why string) {
	p.t.Helper()
	programs.Must(p.t, webDriver("POST", p.session+"/execute/sync", map[string]any{"script": "return " + call + ".then(() => 'done', (e) => e.message)", "args": []string{}}, &why))
	return why
}

// english are words that no German sentence of ours has.
var english = regexp.MustCompile(`(?i)\b(the|is|are|your|this|that|of|and|to|for|with|nobody|open|by|can)\b`)

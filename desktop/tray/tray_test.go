//go:build !darwin || cgo

package tray

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/assets"
	"porchlight/desktop/menu"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

// deafFor is for how long a line that has moved takes no click.
const deafFor = ignoreFor

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A line that is hidden is not on the screen any more: a click that was on its way
// there does nothing, and neither does one on a line below it.
func TestHiddenLinesDoNothing(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	below := &trayLine{}
	l := &trayLine{sub: []*trayLine{nil, below}}
	l.mean(verbs.Action{Verb: verbs.Open, Name: "notes"}, now)
	below.mean(verbs.Action{Verb: verbs.Revoke, Name: "notes"}, now)
	l.set(menu.Line{})
	for _, hidden := range []*trayLine{l, below} {
		if act, _ := hidden.clicked(now.Add(time.Hour)); act.Verb != verbs.Nothing {
			t.Errorf("a hidden line still does %+v", act)
		}
	}
}

// The owner clicks what the line said when they aimed: when it comes to mean
// another app at that moment, the click is nobody's.
func TestClickOnALineThatJustChanged(t *testing.T) {
	t.Parallel()
	notes, photos := verbs.ApproveOf(owner.Pending("notes", "Notes", 3000)), verbs.ApproveOf(owner.Pending("photos", "Photos", 3001))
	l := &trayLine{}
	now := time.Unix(1000, 0)

	l.mean(notes, now)
	if act, ok := l.clicked(now); !ok || act != notes {
		t.Fatalf("a line that was hidden before: %v %v", act, ok)
	}
	l.mean(photos, now)
	if _, ok := l.clicked(now.Add(deafFor - 1)); ok {
		t.Fatal("a click meant for Notes approved Photos")
	}
	if act, ok := l.clicked(now.Add(deafFor)); !ok || act != photos {
		t.Fatalf("after a moment: %v %v", act, ok)
	}
	// The same app with another port is another request: nobody has read it yet.
	moved := verbs.ApproveOf(owner.Pending("photos", "Photos", 1234))
	l.mean(moved, now.Add(deafFor))
	if _, ok := l.clicked(now.Add(2*deafFor - 1)); ok {
		t.Fatal("a click meant for one port approved another")
	}
	if act, ok := l.clicked(now.Add(2 * deafFor)); !ok || act != moved {
		t.Fatalf("after a moment: %v %v", act, ok)
	}
	// Drawn again as it was: there is nothing new to read.
	l.mean(moved, now.Add(2*deafFor))
	if _, ok := l.clicked(now.Add(2 * deafFor)); !ok {
		t.Fatal("a line that stayed as it was ignored a click")
	}
}

// A line that was hidden and is shown again for somebody else is one that changed: the
// owner may have aimed at whom it was about before.
func TestClickOnALineThatCameBackForSomebodyElse(t *testing.T) {
	t.Parallel()
	l := &trayLine{}
	now := time.Unix(1000, 0)
	l.mean(verbs.RemoveOf("bob", "bob@example.com"), now)
	l.forget(now.Add(time.Second))
	l.mean(verbs.RemoveOf("carol", "carol@example.com"), now.Add(time.Second+applyEvery))
	if act, ok := l.clicked(now.Add(time.Second + applyEvery + deafFor - 1)); ok {
		t.Fatalf("a click meant for Bob did %+v", act)
	}
	if act, ok := l.clicked(now.Add(time.Second + applyEvery + deafFor)); !ok || act.Person != "carol" {
		t.Fatalf("after a moment: %+v %v", act, ok)
	}
}

// What the owner chose is what the icon is drawn for.
func TestPanelAsChosen(t *testing.T) {
	t.Parallel()
	for chosen, want := range map[string]assets.Panel{"light": assets.OnLight, "dark": assets.OnDark, "outline": anyPanel, "": defaultPanel()} {
		if got := panelOf(chosen); got != want {
			t.Errorf("%q: drawn for %v, want %v", chosen, got, want)
		}
	}
}

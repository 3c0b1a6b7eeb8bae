package engine

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Weakness: beside "Notes", another user's program asks for "Nоtes" with a Cyrillic о,
// and the owner approves it as the one they know (SE10).
// Checked: the owner is told which app it could be taken for, by every look that the
// table of UTS #39 has, and of nothing else.
func TestLookAlikesAreTold(t *testing.T) {
	t.Parallel()
	h := openHost(t)
	h.live(t, "notes", "Notes", 8000)
	h.live(t, "mail", "Mail", 8001)
	h.live(t, "oil", "Oil 1", 8002)
	for label, want := range map[string]string{
		"Nоtes": "Notes", "Νotes": "Notes", "NOTЕS": "Notes", "n\u2134tes": "", "Nötes": "", "Note": "", "Notes 2": "", "Diary": "",
		"Nοtеs": "Notes", "N০tes": "Notes", "Notes\u0323": "", "rnail": "Mail", "Mai1": "Mail", "MaiI": "Mail", "Маil": "Mail", "Oil l": "Oil 1", "0iI I": "Oil 1",
	} {
		_, err := h.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "other", Label: label, LocalPort: 9000})
		if label == "n\u2134tes" && agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("%q is one with Notes: %v", label, err) // as ever
		} else if label != "n\u2134tes" && err != nil {
			t.Errorf("%q: %v", label, err)
		}
		for _, app := range h.apps.OwnerApps(nil) {
			if app.Name == "other" && app.Label == label && app.Resembles != want || app.Name != "other" && app.Resembles != "" {
				t.Errorf("%s, called %q, could be taken for %q", app.Name, app.Label, app.Resembles)
			}
		}
	}
	programs.Must(t, second(h.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "other", Label: "Nоtes", LocalPort: 9000})))
	h.reopen()
	if i := slices.IndexFunc(h.apps.OwnerApps(nil), func(a agentapi.OwnerApp) bool { return a.Resembles == "Notes" }); i < 0 {
		t.Error("it is forgotten with a restart")
	}
	programs.Must(t, second(h.apps.Approve(t.Context(), "other", agentapi.Approval{}))) // the owner may want it so
	for _, app := range h.apps.OwnerApps(nil) {
		if app.Resembles != "" {
			t.Errorf("%s has been approved", app.Name)
		}
	}
}

// A request holds no look, as it holds no label.
func TestRequestsAreNotTakenForEachOther(t *testing.T) {
	t.Parallel()
	h := openHost(t)
	for name, label := range map[string]string{"one": "Notes", "two": "Nоtes"} {
		programs.Must(t, second(h.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: name, Label: label, LocalPort: 9000})))
	}
	for _, app := range h.apps.OwnerApps(nil) {
		if app.Resembles != "" {
			t.Errorf("%q is taken for %q", app.Label, app.Resembles)
		}
	}
}

// Every line of the table is found, and nothing between them.
func TestConfusables(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range strings.Lines(confusables) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		n++
		var r rune
		for _, c := range line[:6] {
			r = r<<4 | rune(strings.IndexRune("0123456789ABCDEF", c))
		}
		if like, found := drawnLike(r); !found || like != strings.TrimSpace(line[7:]) {
			t.Fatalf("%q is %q", line, like)
		}
	}
	if n < 6000 || !strings.Contains(confusables, "# Version: 16.0.0\n") {
		t.Errorf("%d lines", n)
	}
	for _, r := range "aMxÄ\x00\U0010ffff" {
		if like, found := drawnLike(r); found {
			t.Errorf("%q is like %q", r, like)
		}
	}
	if got := skeleton("m\u0301Ä\U0001f600"); got != "rn\u0301A\u0308\U0001f600" {
		t.Errorf("%+q", got)
	}
}

// However a label is composed, it looks the same.
func FuzzSkeleton(f *testing.F) {
	for _, s := range []string{"Notes", "Nоtes", "rn", "\u0301", "½", "ﷺ", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if looks := skeleton(s); looks != skeleton(norm.NFC.String(s)) || looks != skeleton(norm.NFD.String(s)) {
			t.Fatalf("%+q looks like %+q", s, looks)
		}
	})
}

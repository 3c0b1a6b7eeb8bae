package notes

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"porchlight/desktop/verbs"
	"porchlight/test/owner"
	"porchlight/test/programs"
)

// screen is a toolkit's notification service, and what was done by clicks on it.
type screen struct {
	*toolkitNotes
	sets    map[string][]string // buttons, by the id of their set
	sent    []string            // id, set, title and body, with lines between
	removed []string
	did     []verbs.Action
	fails   error
}

// newScreen makes each text literal as it is told, or leaves it as it is shown.
func newScreen(literal func(string) string) *screen {
	s := &screen{sets: map[string][]string{}}
	if literal == nil {
		literal = asShown
	}
	s.toolkitNotes = newToolkitNotes(slog.New(slog.DiscardHandler), func(a verbs.Action) { s.did = append(s.did, a) }, literal)
	return s
}

func (s *screen) start() {
	s.serve(&noteService{
		register: func(set string, buttons []string) error { s.sets[set] = buttons; return s.fails },
		send: func(id, set, title, body string) error {
			s.sent = append(s.sent, strings.Join([]string{id, set, title, body}, "\n"))
			return s.fails
		},
		remove: func(id string) { s.removed = append(s.removed, id) },
	})
}

// shows puts a note on the screen and returns its id and buttons.
func (s *screen) shows(t *testing.T, n Note) (id string, buttons []string) {
	t.Helper()
	programs.Must(t, s.Show(t.Context(), n))
	return s.lastSent()
}

func (s *screen) lastSent() (id string, buttons []string) {
	parts := strings.Split(s.sent[len(s.sent)-1], "\n")
	return parts[0], s.sets[parts[1]]
}

var asks = Note{
	Key: "request-notes", Title: "Notes asks for an address", Body: "python3 on port 8000",
	Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps},
	Buttons: []Button{
		{"Approve", verbs.Action{Verb: verbs.Approve, Name: "notes"}},
		{"Deny", verbs.Action{Verb: verbs.Deny, Name: "notes"}},
	},
}

// A button does what it says, once; a click on the note itself what the note is about.
func TestToolkitButtons(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]verbs.Verb{"0": verbs.Approve, "1": verbs.Deny, actionDefault: verbs.Show} {
		s := newScreen(nil)
		s.start()
		id, buttons := s.shows(t, asks)
		if !slices.Equal(buttons, []string{"Approve", "Deny"}) {
			t.Fatalf("the buttons are %q", buttons)
		}
		s.heard(id, what)
		s.heard(id, what)
		if len(s.did) != 2 || s.did[0].Verb != want || s.did[1] != (verbs.Action{Verb: verbs.Show}) {
			t.Errorf("%s did %+v", what, s.did)
		}
	}
	s := newScreen(nil)
	s.start()
	for _, odd := range []string{actionDismiss, "2", "-1", "approve", ""} {
		id, _ := s.shows(t, asks)
		s.heard(id, odd)
	}
	if len(s.did) != 0 {
		t.Errorf("what is no button did %+v", s.did)
	}
}

// A note that another took the place of, that is out of date, or of an earlier run may
// still be on the screen: its buttons answer nothing.
func TestToolkitNotesOutOfDate(t *testing.T) {
	t.Parallel()
	s := newScreen(nil)
	s.start()
	first, _ := s.shows(t, asks)
	again := asks
	again.Buttons = []Button{{"Approve", verbs.ApproveOf(owner.Pending("notes", "Notes", 9000))}}
	second, _ := s.shows(t, again)
	if first == second || !slices.Equal(s.removed, []string{first}) {
		t.Errorf("%s, then %s; removed %q", first, second, s.removed)
	}
	s.heard(first, "0")
	s.Drop(t.Context(), asks.Key)
	s.heard(second, "0")
	earlier := newScreen(nil)
	earlier.start()
	id, _ := earlier.shows(t, asks)
	s.heard(id, "0")
	if len(s.did) != 3 || slices.ContainsFunc(s.did, func(a verbs.Action) bool { return a != verbs.Action{Verb: verbs.Show} }) {
		t.Errorf("they did %+v", s.did)
	}
	if !slices.Equal(s.removed, []string{first, second}) {
		t.Errorf("removed %q", s.removed)
	}
}

// What is told before the toolkit runs waits for it, and what is over by then is not shown.
func TestToolkitNotesWait(t *testing.T) {
	t.Parallel()
	s := newScreen(nil)
	for i := range maxWaiting + 3 {
		programs.Must(t, s.Show(t.Context(), Note{Key: fmt.Sprint("n", i), Title: fmt.Sprint("Note ", i)}))
	}
	_ = s.Show(t.Context(), Note{Key: "n5", Title: "Note 5, again"})
	s.Drop(t.Context(), "n6")
	s.start()
	if len(s.sent) != maxWaiting-1 || !strings.Contains(s.sent[len(s.sent)-1], "Note 5, again") {
		t.Errorf("shown: %q", s.sent)
	}
	if text := strings.Join(s.sent, " "); strings.Contains(text, "Note 6") || strings.Contains(text, "Note 0") || !strings.Contains(text, "Note 18") {
		t.Errorf("shown: %q", s.sent)
	}
	refused := newScreen(nil)
	_ = refused.Show(t.Context(), asks)
	refused.serve(nil)
	if err := refused.Show(t.Context(), asks); !errors.Is(err, errNoNotes) || len(refused.waiting) != 0 {
		t.Errorf("without a service: %v, %d wait", err, len(refused.waiting))
	}
	gone := newScreen(nil) // with a note on it
	gone.start()
	id, _ := gone.shows(t, asks)
	gone.serve(nil)
	gone.Drop(t.Context(), asks.Key)
	gone.heard(id, "0")
	if err := gone.Show(t.Context(), asks); !errors.Is(err, errNoNotes) || len(gone.did) != 1 || gone.did[0] != (verbs.Action{Verb: verbs.Show}) {
		t.Errorf("after the service went: %v, did %+v", err, gone.did)
	}
	broken := newScreen(nil)
	broken.fails = errors.New("no")
	broken.start()
	if err := broken.Show(t.Context(), asks); err == nil || len(broken.shown) != 0 {
		t.Errorf("a service that fails: %v", err)
	}
}

// A note that was closed is not kept, and of those that may still be on the screen only the
// newest are: some systems never tell that one was closed.
func TestToolkitKeepsFewNotes(t *testing.T) {
	t.Parallel()
	s := newScreen(nil)
	s.start()
	id, _ := s.shows(t, asks)
	s.heard(id, actionDismiss)
	if len(s.shown) != 0 || len(s.ids) != 0 || len(s.did) != 0 {
		t.Errorf("after it was closed %d and %d are kept; did %+v", len(s.shown), len(s.ids), s.did)
	}
	s.removed = nil
	var sent []string
	for i := range maxShown + 20 {
		id, _ := s.shows(t, Note{Key: fmt.Sprint("n", i), Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewApps}})
		sent = append(sent, id)
	}
	if len(s.shown) != maxShown || len(s.ids) != maxShown || !slices.Equal(s.removed, sent[:20]) {
		t.Errorf("%d and %d are kept; removed %q", len(s.shown), len(s.ids), s.removed)
	}
	s.heard(sent[20], actionDefault)
	if len(s.did) != 1 || s.did[0].View != verbs.ViewApps {
		t.Errorf("a click on the oldest that is kept did %+v", s.did)
	}
}

// Weakness: the library by which notes go on Windows puts their text into XML, and where
// that fails into a PowerShell script, and beeep on macOS into an AppleScript; none of them
// escapes it. A label is what another program chose.
// Checked: nothing is left of it that means something to any of them.
func TestNotesAreHarmless(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Notes, on port 8000…\nrun by maya":                                            "Notes, on port 8000…\nrun by maya",
		"]]></text><actions><action content='Approve' arguments='x'/></actions><text>": "]]›‹/text›‹actions›‹action content=′Approve′ arguments=′x′/›‹/actions›‹text›",
		"$(Start-Process calc)`n":                                                      "＄(Start-Process calc)ˋn",
		"\n\"@\nStart-Process calc":                                                    "\n″@\nStart-Process calc",
		"It failed:\n”@\nStart-Process calc":                                           "It failed:\n″@\nStart-Process calc",
		"\n“@\n„@\n‟@\n":                                                               "\n″@\n″@\n″@\n",
		"\n'@\n‘@\n’@\n‚@\n‛@":                                                         "\n′@\n′@\n′@\n′@\n′@",
		`" & (do shell script "id") \`:                                                 "″ ＆ (do shell script ″id″) ＼",
		"a\x00b\x1b[31m\u0085c":                                                        "a b [31m c",
		"{{.AppID}}":                                                                   "{ {.AppID}}",
	} {
		if got := harmless(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	// What PowerShell takes for a quote: CharTraits.cs has them.
	for _, quote := range "\"'\u2018\u2019\u201a\u201b\u201c\u201d\u201e" {
		if got := harmless(string(quote)); got != "″" && got != "′" {
			t.Errorf("%U became %q", quote, got)
		}
	}
	s := newScreen(harmless)
	s.start()
	id, buttons := s.shows(t, Note{Key: "k", Title: "<b>", Body: strings.Repeat("$", 5000), Buttons: []Button{{`"Approve"`, verbs.Action{}}}})
	if got := strings.Split(s.sent[0], "\n"); got[0] != id || got[2] != "‹b›" || len([]rune(got[3])) != maxNoteText || strings.ContainsAny(got[3], "$") || buttons[0] != "″Approve″" {
		t.Errorf("sent %q with %q", got, buttons)
	}
}

// A note that is only told in place of another is none by itself, and changes the one that
// waits; what stands already cannot be changed, and stays as it is with its buttons.
func TestToolkitTellsNothingTwice(t *testing.T) {
	t.Parallel()
	later := asks
	later.Title, later.InPlace = "Notes asks, and waits", true
	s := newScreen(nil)
	programs.Must(t, s.Show(t.Context(), later)) // nothing waits to be changed
	programs.Must(t, s.Show(t.Context(), asks))
	programs.Must(t, s.Show(t.Context(), later))
	s.start()
	if len(s.sent) != 1 || !strings.Contains(s.sent[0], later.Title) {
		t.Fatalf("sent %q", s.sent)
	}
	id, _ := s.lastSent()
	programs.Must(t, s.Show(t.Context(), later))
	if len(s.sent) != 1 || len(s.removed) != 0 {
		t.Errorf("sent %q, took away %q", s.sent, s.removed)
	}
	s.heard(id, "1")
	programs.Must(t, s.Show(t.Context(), later)) // it was answered
	if len(s.sent) != 1 || len(s.did) != 1 || s.did[0].Verb != verbs.Deny {
		t.Errorf("sent %q, did %+v", s.sent, s.did)
	}
}

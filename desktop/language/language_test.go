package language_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/internal/words"
	"porchlight/test/owner"
)

// Whatever a program calls itself, a line of the menu stays one short line.
func FuzzShorten(f *testing.F) {
	for _, s := range []string{"", "Notes", "a\nb", strings.Repeat("é", 200), "\u202eabc", "a\u2029b", "\xff\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := language.Shorten(s)
		if n := utf8.RuneCountInString(got); n > 48 {
			t.Fatalf("%d characters", n)
		}
		if strings.ContainsAny(got, "\r\n\t\x00\x1b\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c") {
			t.Fatalf("control characters in %q", got)
		}
	})
}

func TestWhoListens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listener agentapi.Listener
		want     string
	}{
		{agentapi.Listener{PID: 7, Program: "python3", User: "maya"}, "port 8010: python3, run by maya"},
		{agentapi.Listener{PID: 7, Program: "python3"}, "port 8010: python3"},
		{agentapi.Listener{User: "www-data"}, "port 8010: run by www-data"},
		{agentapi.Listener{Program: "\u202emaya yb nur ,x", User: "bob"}, "port 8010: maya yb nur ,x, run by bob"},
		{agentapi.Listener{Program: "מחברת", User: "bob"}, "port 8010: \u200e\u2068מחברת\u2069, run by bob"},
		{agentapi.Listener{}, "port 8010: no program seen there"},
	} {
		if got := language.WhoListens(agentapi.OwnerApp{AppSummary: agentapi.AppSummary{LocalPort: 8010}, Listener: c.listener}); got != c.want {
			t.Errorf("%+v: %q, want %q", c.listener, got, c.want)
		}
	}
}

// TestStateInWords: what the agent says is told in the language of the screen, and what it
// says nothing of stays as it is.
func TestStateInWords(t *testing.T) {
	defer language.Speak(language.Spoken().Tag())
	language.Speak(words.German.Tag())
	why := words.Of("the manifest has expired")
	s := agentapi.OwnerState{Update: &agentapi.Update{Problem: why.String(), Words: words.Text{why}}, Apps: []agentapi.OwnerApp{owner.Live("notes", "speaks HTTPS", 3000)}}
	s.Apps[0].Ailment = "speaks HTTPS"
	got := language.InWords(s)
	if got.Update.Problem != "das Manifest ist abgelaufen" || s.Update.Problem != why.String() {
		t.Errorf("said %q of %q", got.Update.Problem, s.Update.Problem)
	}
	if app := got.Apps[0]; app.Ailment != "spricht HTTPS" || s.Apps[0].Ailment != "speaks HTTPS" {
		t.Errorf("said %q of %q", app.Ailment, s.Apps[0].Ailment)
	}
	got.Update, got.Apps[0].Ailment = s.Update, s.Apps[0].Ailment
	if !reflect.DeepEqual(got, s) {
		t.Errorf("%+v, was %+v", got, s)
	}
}

func TestErrorsReachTheOwnerAsSentences(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"the store cannot be used": "The store cannot be used.",
		"Done already.":            "Done already.",
		"":                         "",
		"été":                      "Été.",
	} {
		if got := language.Sentence(errors.New(said)); got != want {
			t.Errorf("Sentence(%q) = %q, want %q", said, got, want)
		}
	}
}

package words_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"porchlight/internal/words"
)

func TestFailuresAreSaidInWords(t *testing.T) {
	t.Parallel()
	inner := words.Errorf("it is not a file")
	outer := words.Errorf("The export was not saved as %s: %w. Choose another place.", "/x", inner)
	system := words.Errorf("Porchlight cannot start: %w", fs.ErrPermission)
	for _, c := range []struct {
		err           error
		english, said string
	}{
		{outer, "The export was not saved as /x: it is not a file. Choose another place.", "Der Export wurde nicht als /x gespeichert: das ist keine Datei. Wählen Sie einen anderen Ort."},
		{fmt.Errorf("around: %w", inner), "around: it is not a file", "das ist keine Datei"},
		{system, "Porchlight cannot start: permission denied", "Porchlight kann nicht starten: permission denied"},
		{errors.New("No such 100 % sentence."), "No such 100 % sentence.", "No such 100 % sentence."},
		{errors.New("It reset the connection."), "It reset the connection.", "Die App brach die Verbindung ab."},
		{errors.New("It did not answer with TLS, and was spoken to with (tls: <x> %d)."), "It did not answer with TLS, and was spoken to with (tls: <x> %d).", "Die App antwortete ohne TLS und wurde mit angesprochen (tls: <x> %d)."},
	} {
		if got := c.err.Error(); got != c.english {
			t.Errorf("in English %q, want %q", got, c.english)
		}
		if got := words.German.Or(words.InWords(c.err), c.err.Error()); got != c.said {
			t.Errorf("said %q, want %q", got, c.said)
		}
	}
	if !errors.Is(system, fs.ErrPermission) {
		t.Error("what was wrapped is lost")
	}
}

func TestFormatsBecomeKeys(t *testing.T) {
	t.Parallel()
	made := words.OfFormat("%.3q is %d of %[1]s, not %v", "letters", 8010, "more")
	if made.Key != `"%s" is %s of %[1]s, not %s` || made.Args[0] != "let" || made.Args[1] != "8010" {
		t.Errorf("%+v", made)
	}
	if odd := words.OfFormat("%v", []string{"x"}); !odd.IsZero() {
		t.Errorf("a list became %+v", odd)
	}
}

package main

import "testing"

// Weakness: what to type next has an app's label in it, which the app chose, and quotes of
// one system's shell are none to another's. Attack: a label that ends the argument and
// begins a command. Checked: it stays one argument, for each system's shells.
func TestArgument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, unix, windows string }{
		{"notes", "notes", "notes"},
		{`C:\Users\maya\porchlight.exe`, `'C:\Users\maya\porchlight.exe'`, `C:\Users\maya\porchlight.exe`},
		{"Äpfel 2", "'Äpfel 2'", `"Äpfel 2"`},
		{"", "''", `""`},
		{"-x", "'-x'", `"-x"`},
		{"it's", `'it'\''s'`, `"it?s"`},
		{"a & calc", "'a & calc'", `"a ? calc"`},
		{"$(calc) %PATH% `x` \"y", "'$(calc) %PATH% `x` \"y'", `"??calc? ?PATH? ?x? ?y"`},
	} {
		if got := argumentOn("linux", c.text); got != c.unix {
			t.Errorf("%q: %s, want %s", c.text, got, c.unix)
		}
		if got := argumentOn("windows", c.text); got != c.windows {
			t.Errorf("%q on Windows: %s, want %s", c.text, got, c.windows)
		}
	}
}

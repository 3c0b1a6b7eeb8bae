package web

import (
	"testing"

	"porchlight/internal/words"
)

// A page that cannot be made would end the program when somebody first asks for it.
func TestEveryPageCanBeMade(t *testing.T) {
	t.Parallel()
	files, err := templateFiles.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(pages), len(files)-1; got != want { // all but layout.html
		t.Errorf("%d pages of %d templates", got, want)
	}
	for name, page := range pages {
		for _, l := range append(words.All(), words.Pseudo) {
			if made := page(l); made.Lookup("main") == nil || made != page(l) {
				t.Errorf("%s in %s has no main, or is made each time", name, l.Tag())
			}
		}
	}
}

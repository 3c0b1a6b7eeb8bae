package web

import (
	"regexp"
	"testing"

	"porchlight/internal/words"
	"porchlight/test/programs"
)

// A page that cannot be made would end the program when somebody first asks for it.
func TestEveryPageCanBeMade(t *testing.T) {
	t.Parallel()
	files := programs.Got(templateFiles.ReadDir("templates"))(t)
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

// TestEnterAllows: Enter in a form presses its first button (HTML, implicit
// submission), so that one never is the one that says no.
func TestEnterAllows(t *testing.T) {
	t.Parallel()
	files := programs.Got(templateFiles.ReadDir("templates"))(t)
	forms, button := regexp.MustCompile(`(?s)<form.*?</form>`), regexp.MustCompile(`<button[^>]*>`)
	asked := 0
	for _, f := range files {
		raw := programs.Got(templateFiles.ReadFile("templates/" + f.Name()))(t)
		for _, form := range forms.FindAllString(string(raw), -1) {
			buttons := button.FindAllString(form, -1)
			if len(buttons) < 2 {
				continue
			}
			asked++
			if regexp.MustCompile(`value="deny"|formnovalidate`).MatchString(buttons[0]) {
				t.Errorf("%s: Enter presses %s", f.Name(), buttons[0])
			}
		}
	}
	if asked < 2 {
		t.Errorf("%d forms with two buttons were looked at", asked)
	}
}

package desktop

import (
	"testing"

	"porchlight/desktop/page"
	"porchlight/test/programs"
)

// notedWindow is a window that passes on what the page is told.
type notedWindow struct {
	page.Window
	events chan string
}

func (t notedWindow) Emit(name string, _ any) { t.events <- name }

// The window looks as the owner chose, or else as the desktop does; the page is told
// when that changes.
func TestLooksAsChosenOrAsTheDesktop(t *testing.T) {
	t.Parallel()
	s := settingsIn(t, t.TempDir())
	page := notedWindow{events: make(chan string)}
	a := &app{settings: s, window: page}
	expect := func(want string) {
		t.Helper()
		if got := a.appearance(); got != want {
			t.Errorf("it looks %q, want %q", got, want)
		}
	}
	expect("") // the page sees the desktop itself
	a.desktopLooks(true)
	expect("dark")
	a.desktopLooks(true) // as before: nothing to tell
	a.desktopLooks(false)
	if name := <-page.events; name != "looks" {
		t.Errorf("the page is told %q", name)
	}
	expect("light")
	programs.Must(t, s.change(func(v *settingsValues) { v.Appearance = "dark" }))
	expect("dark")
}

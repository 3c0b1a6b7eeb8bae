package autostart

import (
	"testing"

	"porchlight/test/programs"
)

// The Run key starts a program at login, quoted; one that was moved does not count.
func TestAutostart(t *testing.T) {
	const program = `C:\Porch light\porchlight-desktop.exe`
	check := func(want bool) {
		t.Helper()
		if on, err := Enabled(program); err != nil || on != want {
			t.Errorf("Enabled = %v, %v; want %v", on, err, want)
		}
	}
	programs.Must(t, Disable())
	check(false)
	for range 2 {
		programs.Must(t, Enable(program))
		check(true)
	}
	if on, err := Enabled(`C:\elsewhere\porchlight-desktop.exe`); err != nil || on {
		t.Errorf("another program's value counts: %v, %v", on, err)
	}
	programs.Must(t, Disable())
	check(false)
}

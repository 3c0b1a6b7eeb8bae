package desktop

import (
	"os"
	"path/filepath"
	"testing"

	"porchlight/internal/autostart"
	"porchlight/test/programs"
)

// The program was moved since the owner had it start at login: it still does,
// unless the old one is there or the owner switched the entry off.
func TestAutostartFollowsTheProgram(t *testing.T) {
	here := programs.Got(program())(t)
	for _, c := range []struct {
		name              string
		stays, off, never bool
		want              bool // this program starts at login
	}{
		{name: "moved", want: true},
		{name: "another copy", stays: true},
		{name: "switched off elsewhere", off: true},
		{name: "never asked for", never: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
			old := filepath.Join(dir, "old", "porchlight-desktop")
			if c.stays {
				programs.Must(t, os.MkdirAll(filepath.Dir(old), 0o700))
				programs.Must(t, os.WriteFile(old, nil, 0o700))
			}
			if !c.off {
				programs.Must(t, autostart.Enable(old))
			}
			p := preferencesIn(t, dir)
			if !c.never {
				programs.Must(t, p.settings.change(func(v *settingsValues) { v.AtLogin = old }))
			}
			programs.Must(t, p.followMove())
			if on, err := autostart.Enabled(here); err != nil || on != c.want {
				t.Errorf("this program starts at login: %v, %v; want %v", on, err, c.want)
			}
			if on, err := autostart.Enabled(old); err != nil || on != (c.stays || c.never) {
				t.Errorf("the old one does: %v, %v", on, err)
			}
			if kept := preferencesIn(t, dir).settings.get().AtLogin; (kept == here) != c.want {
				t.Errorf("remembers %q", kept)
			}
		})
	}
}

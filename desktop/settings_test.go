package desktop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// A damaged file is no reason not to start, and is whole again after the next
// change.
func TestDamagedSettings(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"half": `{"panel":"dark","appear`, "empty": "", "zeros": "\x00\x00\x00\x00", "another shape": `["dark"]`, "another type": `{"panel":"light","lastNotice":"x"}`, "a word": `"dark"`,
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, settingsFile)
		programs.Must(t, os.WriteFile(file, []byte(text), 0o600))
		s, err := openSettings(dir)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := s.get(); got != (settingsValues{}) {
			t.Errorf("%s: read as %+v", what, got)
		}
		if err := s.change(func(v *settingsValues) { v.Welcomed = true }); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if again, err := openSettings(dir); err != nil || again.get() != s.get() {
			t.Errorf("%s: written as %+v, %v", what, again, err)
		}
	}
}

// What cannot be written is not half changed: the owner who tries again has it
// written then.
func TestSettingsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := settingsIn(t, dir)
	// In the way, also of a test that runs as root.
	inTheWay := filepath.Join(dir, settingsFile)
	programs.Must(t, os.Mkdir(inTheWay, 0o700))
	dark := func(v *settingsValues) { v.Appearance = "dark" }
	if err := s.change(dark); err == nil || !strings.HasPrefix(err.Error(), "Porchlight cannot keep its settings, so nothing was changed.") {
		t.Errorf("it said %v", err)
	}
	if got := s.get().Appearance; got != "" {
		t.Errorf("the window is %q now", got)
	}
	programs.Must(t, os.Remove(inTheWay))
	programs.Must(t, s.change(dark))
	if again, err := openSettings(dir); err != nil || again.get().Appearance != "dark" {
		t.Errorf("the second try wrote %+v, %v", again, err)
	}
}

// settingsIn are those that a data directory keeps.
func settingsIn(t *testing.T, dir string) *settings {
	t.Helper()
	return programs.Got(openSettings(dir))(t)
}

package desktop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/ownersecret"
	"porchlight/desktop/language"
	"porchlight/test/programs"
)

// fakeFile keeps a secret, or not.
type fakeFile struct {
	ownersecret.Store
	secret string
	err    error
}

func (f *fakeFile) Get(context.Context) (string, error) {
	if f.secret == "" && f.err == nil {
		return "", ownersecret.ErrNotFound
	}
	return f.secret, f.err
}

func (f *fakeFile) Set(_ context.Context, secret string) error { f.secret = secret; return nil }

func preferencesIn(t *testing.T, dir string) *preferences {
	t.Helper()
	kept := settingsIn(t, dir)
	return &preferences{settings: kept, dataDir: dir, inFile: &fakeFile{}}
}

func TestPreferencesAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := preferencesIn(t, dir)
	if first := p.Preferences(); first.Welcomed || first.Appearance != "" || first.SecretKept != "keychain" || first.DataDir != dir {
		t.Errorf("at first %+v", first)
	}
	programs.Must(t, p.Welcomed(), p.Appearance("dark"))
	if err := p.Appearance("sepia"); err == nil || !strings.Contains(err.Error(), `"sepia"`) {
		t.Errorf("an appearance there is not: %v", err)
	}
	next := preferencesIn(t, dir)
	if again := next.Preferences(); again.SecretKept != "keychain" {
		t.Errorf("before a file is chosen %+v", again)
	}
	programs.Must(t, next.KeepInFile())
	if again := next.Preferences(); !again.Welcomed || again.Appearance != "dark" || again.SecretKept != "file" {
		t.Errorf("after a restart %+v", again)
	}
	if info, err := os.Stat(filepath.Join(dir, settingsFile)); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the settings file: %v, %v", info, err)
	}
}

// The owner chooses the file while their apps are served: where it cannot be kept
// or must not be read, nothing is chosen, and nothing ends.
func TestAFileThatCannotBeKeptIsNotChosen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := preferencesIn(t, dir)
	file := p.inFile.(*fakeFile)
	file.err = errors.New("the disk is full")
	if err := p.KeepInFile(); err == nil || language.Sentence(err) != "The disk is full." {
		t.Errorf("chosen, with %v", err)
	}
	if again := preferencesIn(t, dir).Preferences(); again.SecretKept != "keychain" {
		t.Errorf("after a restart %+v", again)
	}
	file.err = nil
	if err := p.KeepInFile(); err != nil || file.secret == "" {
		t.Errorf("with room again: %v, the secret is %d bytes", err, len(file.secret))
	}
}

func TestWithoutAnAuthorityThereIsNothingToTrust(t *testing.T) {
	t.Parallel()
	p := preferencesIn(t, t.TempDir())
	if trust := p.Preferences().Trust; trust.Possible || trust.Trusted || trust.Problem != "" {
		t.Errorf("%+v", trust)
	}
	for _, on := range []bool{true, false} {
		if err := p.Trust(on); err == nil || err.Error() != "This computer has no authority of its own to trust." {
			t.Errorf("Trust(%v): %v", on, err)
		}
	}
}

func TestShowDataShowsTheDataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := preferencesIn(t, dir)
	var shown string
	p.show = func(_ context.Context, path string) error { shown = path; return nil }
	if err := p.ShowData(); err != nil || shown != dir {
		t.Errorf("showed %q, %v", shown, err)
	}
}

// An AppImage runs from a mount that is gone after it: what starts at login is
// the image.
func TestAnImageStartsAtLogin(t *testing.T) {
	t.Setenv("APPIMAGE", "/home/maya/Porchlight.AppImage")
	if path, err := program(); err != nil || path != "/home/maya/Porchlight.AppImage" {
		t.Errorf("%q, %v", path, err)
	}
}

package ownersecret

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// wrongForm is what a secret of another form is.
var wrongForm = errMalformed

func TestNewHashEqual(t *testing.T) {
	t.Parallel()
	a, b := New(), New()
	if a == b || len(a) != 43 || strings.ContainsAny(a, "+/=") {
		t.Errorf("New made %d and %d characters", len(a), len(b))
	}
	if !Equal(Hash(a), a) {
		t.Error("a secret does not equal its own hash")
	}
	for _, wrong := range []string{b, "", a[:42], a + "A", strings.ToLower(a)} {
		if Equal(Hash(a), wrong) {
			t.Errorf("%q passes for another secret", wrong)
		}
	}
	for _, hash := range [][]byte{nil, {}, Hash(a)[:31]} {
		if Equal(hash, a) || Equal(hash, "") {
			t.Errorf("a hash of %d bytes matches", len(hash))
		}
	}
}

// configure gives the test a configuration directory of its own.
func configure(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)    // macOS
	t.Setenv("AppData", dir) // Windows
}

func TestFile(t *testing.T) {
	configure(t)
	ctx := context.Background()
	data := t.TempDir()
	s := File(data)
	if _, err := s.Get(ctx); !errors.Is(err, ErrNotFound) {
		t.Fatalf("Get before Set: %v", err)
	}
	if err := s.Delete(ctx); !errors.Is(err, ErrNotFound) {
		t.Fatalf("Delete before Set: %v", err)
	}
	first, second := New(), New()
	for _, want := range []string{first, second} {
		programs.Must(t, s.Set(ctx, want))
		if got, err := s.Get(ctx); err != nil || got != want {
			t.Fatalf("Get: %v, the right secret: %v", err, got == want)
		}
	}
	if _, err := File(t.TempDir()).Get(ctx); !errors.Is(err, ErrNotFound) {
		t.Errorf("another data directory: %v", err)
	}
	if got, err := File(data + "/sub/..").Get(ctx); err != nil || got != second {
		t.Errorf("the same directory by another path: %v", err)
	}

	path := programs.Got(s.Path())(t)
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("beside the secret lies %v (%v)", entries, err)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
	programs.Must(t, s.Delete(ctx))
	if _, err := s.Get(ctx); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get after Delete: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Set(gone, first); !errors.Is(err, context.Canceled) {
		t.Errorf("Set with a context that is over: %v", err)
	}
}

func TestFileRefuses(t *testing.T) {
	ctx := context.Background()
	good := New()
	for name, c := range map[string]struct {
		harm  func(path string) error
		is    error
		posix bool
	}{
		"readable by the group": {func(p string) error { return os.Chmod(p, 0o640) }, ErrExposed, true},
		"writable by all":       {func(p string) error { return os.Chmod(p, 0o602) }, ErrExposed, true},
		"open directory":        {func(p string) error { return os.Chmod(filepath.Dir(p), 0o755) }, ErrExposed, true},
		"link": {func(p string) error {
			if err := os.Rename(p, p+".real"); err != nil {
				return err
			}
			return os.Symlink(p+".real", p)
		}, nil, true},
		"empty":    {func(p string) error { return os.WriteFile(p, nil, 0o600) }, wrongForm, false},
		"too long": {func(p string) error { return os.WriteFile(p, make([]byte, 1<<20), 0o600) }, wrongForm, false},
		"short":    {func(p string) error { return os.WriteFile(p, []byte(good[:40]), 0o600) }, wrongForm, false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.posix && runtime.GOOS == "windows" {
				t.Skip("Windows keeps no permission bits")
			}
			configure(t)
			s := File(t.TempDir())
			programs.Must(t, s.Set(ctx, good))
			path := programs.Got(s.Path())(t)
			programs.Must(t, c.harm(path))
			secret, err := s.Get(ctx)
			if err == nil || secret != "" || errors.Is(err, ErrNotFound) {
				t.Fatalf("Get: %v", err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("Get: %v, want %v", err, c.is)
			}
			if strings.Contains(err.Error(), good[:20]) {
				t.Error("the error quotes the secret")
			}
		})
	}
}

func TestFileStaysOutOfTheDataDirectory(t *testing.T) {
	configure(t)
	config := programs.Got(os.UserConfigDir())(t)
	for _, data := range []string{config, filepath.Dir(config), filepath.Join(config, "porchlight")} {
		if err := File(data).Set(context.Background(), New()); err == nil || !strings.Contains(err.Error(), "inside the data directory") {
			t.Errorf("Set for %s: %v", data, err)
		}
	}
	if err := File(filepath.Join(config, "porchlight", "data")).Set(context.Background(), New()); err != nil {
		t.Errorf("a data directory beside: %v", err)
	}
}

func TestSetTakesOnlySecretsOfNew(t *testing.T) {
	configure(t)
	ctx := context.Background()
	for _, bad := range []string{"", "password", New() + "\n", New() + New(), strings.Repeat("=", 43)} {
		for _, s := range []Store{File(t.TempDir()), Keychain(t.TempDir())} {
			if err := s.Set(ctx, bad); !errors.Is(err, wrongForm) {
				t.Errorf("%s took %q: %v", s.Kind(), bad, err)
			}
		}
	}
}

package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"porchlight/test/programs"
)

func TestFileModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows keeps no permission bits")
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "store.db")
	for _, before := range []os.FileMode{0, 0o644} { // made new, then found too open
		if before != 0 {
			programs.Must(t, os.Chmod(path, before))
		}
		s := openStore(t, path)
		for p, want := range map[string]os.FileMode{path: 0o600, dir: 0o700} {
			if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v %v, want %v", p, info.Mode(), err, want)
			}
		}
		programs.Must(t, s.Close())
	}
}

func TestASecondOpenerIsTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	_, err := Open(t.Context(), path, Options{})
	if !errors.Is(err, ErrInUse) || !strings.HasPrefix(err.Error(), "the store "+path+" is in use by another process") || !strings.Contains(err.Error(), "stop that Porchlight first") {
		t.Errorf("second open: %v", err)
	}
	// The kernel may keep it to itself, but names nobody else.
	if _, holder, named := strings.Cut(err.Error(), "pid "); named && !strings.HasPrefix(holder, strconv.Itoa(os.Getpid())+")") {
		t.Errorf("second open names the wrong process: %v", err)
	}
	programs.Must(t, s.Close())
	s = openStore(t, path)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// A file cut short anywhere is refused with a sentence, or whole; it never
// crashes the program and never opens as something else.
func TestTornFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	for round := range 8 { // several commits, so that pages lie in no order
		err := s.Update(context.Background(), func(tx Tx) error {
			for i := range 40 {
				if err := tx.Put(fmt.Sprintf("%d/%d", i, round), bytes.Repeat([]byte("v"), 300), 0); err != nil {
					return err
				}
			}
			return nil
		})
		programs.Must(t, err)
	}
	programs.Must(t, s.Close())
	whole := programs.Got(os.ReadFile(path))(t)
	refused := 0
	page := os.Getpagesize()
	for length := 1; length < len(whole); length += page/2 + 1 {
		torn := filepath.Join(t.TempDir(), "torn.db")
		programs.Must(t, os.WriteFile(torn, whole[:length], 0o600))
		for range 2 { // the second shows that the first gave the lock back
			s, err := Open(t.Context(), torn, Options{})
			if err == nil {
				n := count(t, s)
				programs.Must(t, s.Close())
				if n != 320 {
					t.Fatalf("cut to %d of %d bytes it opens with %d of 320 items", length, len(whole), n)
				}
				continue
			}
			refused++
			if errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), torn) {
				t.Fatalf("cut to %d of %d bytes: %v", length, len(whole), err)
			}
		}
	}
	if refused == 0 {
		t.Error("no cut was refused: this test shows nothing")
	}
}

func count(t *testing.T, s Store) (n int) {
	t.Helper()
	err := s.View(context.Background(), func(tx Tx) error {
		items, err := tx.Scan("", "", 1<<20)
		n = len(items) - 1 // the version
		return err
	})
	programs.Must(t, err)
	return n
}

func TestNotAStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noise := filepath.Join(dir, "noise.db")
	programs.Must(t, os.WriteFile(noise, bytes.Repeat([]byte("noise "), 5000), 0o600))
	empty := filepath.Join(dir, "empty.db")
	programs.Must(t, os.WriteFile(empty, nil, 0o600))
	for path, says := range map[string]string{
		empty:                        "Restore a copy of it, or remove it to start afresh",
		noise:                        "is damaged or not a Porchlight store",
		dir:                          "cannot open the store " + dir,
		filepath.Join(noise, "x.db"): "cannot create the directory",
	} {
		_, err := Open(t.Context(), path, Options{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Open(%s): %v, want %q", path, err, says)
		}
	}
}

// Weakness: one bit of damage in a deadline of "never" had the row run out in 1970, and
// nobody was told. Checked: the store says that it is damaged, and what to do.
func TestDamagedDeadline(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	programs.Must(t, s.Update(t.Context(), func(tx Tx) error { return tx.Put("person/1", []byte("maya"), 0) }))
	programs.Must(t, s.Close())
	raw := programs.Got(os.ReadFile(path))(t)
	never := append([]byte("person/1"), make([]byte, deadlineLen)...)
	once := append([]byte("person/1"), 0, 0, 0, 0, 0, 1, 0, 0)
	programs.Must(t, os.WriteFile(path, bytes.ReplaceAll(raw, never, once), 0o600))
	if _, err := Open(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "is damaged or not a Porchlight store (restore a copy,") {
		t.Errorf("Open: %v", err)
	}
}

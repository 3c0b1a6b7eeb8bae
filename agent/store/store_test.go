package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
	"porchlight/test/programs"
)

// Weakness: a database that was cut short or written over by a dying disk ends
// the program in a fault of the machine or a panic, and the owner sees a stack
// in place of a sentence.
// Checked: wherever the damage is, Open says so, or the store is whole.
func TestDamagedFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	const apps = 60
	for i := range apps { // several commits, so that pages lie in no order
		name := fmt.Sprint("app-", i)
		change(t, s, AppChange{Name: name, App: &App{
			ID: "id", Name: name, Label: strings.Repeat("x", 100), LocalPort: 8000, Status: agentapi.StatusLive, RequestedAt: time.Unix(1, 0).UTC(),
		}})
	}
	programs.Must(t, s.Close())
	whole := programs.Got(os.ReadFile(filepath.Join(dir, FileName)))(t)
	refused := 0
	try := func(what string, content []byte) {
		t.Helper()
		dir := t.TempDir()
		programs.Must(t, os.WriteFile(filepath.Join(dir, FileName), content, 0o600))
		s, err := Open(dir)
		if err != nil {
			refused++
			if errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "may be damaged") || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: %v", what, err)
			}
			return
		}
		defer s.Close()
		if all, err := s.Apps(); err != nil || len(all.Apps) != apps {
			t.Errorf("%s: it opens with %d of %d apps (%v)", what, len(all.Apps), apps, err)
		}
	}
	page := os.Getpagesize()
	for length := 1; length < len(whole); length += page/2 + 1 {
		try(fmt.Sprintf("cut to %d of %d bytes", length, len(whole)), whole[:length])
	}
	for at := 2 * page; at < len(whole); at += page { // the first two are spare for each other
		noisy := append([]byte(nil), whole...)
		rand.Read(noisy[at : at+page])
		try(fmt.Sprintf("noise in page %d", at/page), noisy)
	}
	if refused == 0 {
		t.Error("no damage was refused: this test shows nothing")
	}
}

// An empty file is not taken for a new store; where there is none, one is made.
func TestEmptyFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	programs.Must(t, os.WriteFile(path, nil, 0o600))
	if _, err := Open(dir); !errors.Is(err, boltfile.ErrEmpty) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	programs.Must(t, os.Remove(path))
	if err := openDir(t, dir).Close(); err != nil {
		t.Error(err)
	}
}

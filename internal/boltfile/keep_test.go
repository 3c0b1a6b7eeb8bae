package boltfile

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"porchlight/test/programs"
)

// TestKeep: the copy of before holds every row, is its owner's alone, and takes the place of an
// earlier one; a program is told of one that it can read; and it goes after a month.
func TestKeep(t *testing.T) {
	t.Parallel()
	path, _, after := furnished(t)
	programs.Must(t, os.WriteFile(path+".format-2", nil, 0o600))
	programs.Must(t, os.WriteFile(path+".format-2.mine", nil, 0o600)) // nobody's business
	keep(t, path, 3)
	if rows, err := contents(path + ".format-3"); err != nil || !maps.Equal(rows, after) {
		t.Errorf("the copy holds %v, %v", rows, err)
	}
	if info, err := os.Stat(path + ".format-3"); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the copy is %v, %v", info, err)
	}
	for most, want := range map[int]string{2: "", 3: path + ".format-3", 9: path + ".format-3"} {
		if got := Kept(path, most); got != want {
			t.Errorf("one that knows %d is told of %q, want %q", most, got, want)
		}
	}
	DropKept(path, time.Now().Add(keptFor-time.Hour))
	wants(t, path, ".format-2.mine", ".format-3")
	DropKept(path, time.Now().Add(keptFor+time.Hour))
	wants(t, path, ".format-2.mine")
}

func keep(t *testing.T, path string, format int) {
	t.Helper()
	db, _, err := Open(path, bolt.Options{}, allBut("lines"), func(*DB) error { return nil })
	programs.Must(t, err)
	programs.Must(t, db.Keep(path, format))
	programs.Must(t, db.Close())
}

func wants(t *testing.T, path string, endings ...string) {
	t.Helper()
	var want, got []string
	for _, ending := range append([]string{""}, endings...) {
		want = append(want, filepath.Base(path)+ending)
	}
	for _, file := range programs.Got(os.ReadDir(filepath.Dir(path)))(t) {
		got = append(got, file.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}

package boltfile

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"porchlight/internal/durable"
)

// A database that is about to be brought to a newer format is copied first, so that an
// earlier version can go on from there. There is one copy, and for a month: it holds what
// has been deleted since.

// keptFor is how long a copy stays.
const keptFor = 30 * 24 * time.Hour

// keptName is what follows the name of the database in that of its copy; it says in
// which format that is.
var keptName = regexp.MustCompile(`^\.format-\d{1,6}$`)

// Keep copies the database at path, which is in a format, to a file beside it (0600). Where
// that fails, as on a full disk, nothing of it is left and the error says why.
func (d *DB) Keep(path string, format int) error {
	copied := fmt.Sprintf("%s.format-%d", path, format)
	err := d.View(func(tx *Tx) error {
		return durable.ReplaceWith(copied, func(f *os.File) error {
			_, err := tx.WriteTo(f)
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, other := range copies(path) {
		if other != copied {
			_ = os.Remove(other) // of a version before the one before
		}
	}
	return nil
}

// Kept is the copy beside the database at path that a program can open which knows formats up
// to most; empty for none.
func Kept(path string, most int) string {
	for _, name := range copies(path) {
		if format, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:]); err == nil && format <= most {
			return name
		}
	}
	return ""
}

// DropKept removes copies that are too old.
func DropKept(path string, now time.Time) {
	for _, name := range copies(path) {
		if info, err := os.Lstat(name); err == nil && now.Sub(info.ModTime()) > keptFor {
			_ = os.Remove(name)
		}
	}
}

func copies(path string) (found []string) {
	all, _ := os.ReadDir(filepath.Dir(path)) // where there is none there are no copies
	for _, file := range all {
		if rest, ok := strings.CutPrefix(file.Name(), filepath.Base(path)); ok && file.Type().IsRegular() && keptName.MatchString(rest) {
			found = append(found, filepath.Join(filepath.Dir(path), file.Name()))
		}
	}
	return found
}

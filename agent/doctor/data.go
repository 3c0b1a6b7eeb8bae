package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"porchlight/agent/store"
	"porchlight/internal/durable"
	"porchlight/internal/words"
)

// roomWanted is how much has to be free on the disk of the data directory, in
// bytes: a store grows before it shrinks.
const roomWanted = 100 << 20

// Data looks at the data directory. One Finding that is wrong means that
// nothing more can be said.
func Data(dir string) []Finding {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return []Finding{Said("data", note, words.Of("%s is not there yet.", dir), "Porchlight makes it when it starts.")}
	case err != nil:
		return []Finding{Said("data", wrong, words.Of("The data directory cannot be read: %s.", err.Error()), "Name the right one with --data, or run this as its owner.")}
	}
	if user, ours := ownerOf(info); !ours {
		return []Finding{Found("data", wrong, fmt.Sprintf("%s belongs to %s, and this command runs as somebody else.", dir, user), fmt.Sprintf("Run it as %s, or name a directory of yours with --data.", user))}
	}
	found := Found("data", fine, dir, "")
	if what, mend := exposed(dir, info); mend != "" {
		found = Said("data", wrong, what, mend)
	}
	return []Finding{found, Disk(dir)}
}

// Disk says whether there is room for what the owner decides.
func Disk(dir string) Finding {
	free, err := durable.FreeSpace(dir)
	switch {
	case err != nil:
		return Said("disk", note, words.Of("How much room there is on the disk of %s is not known.", dir), "")
	case free < roomWanted:
		return Said("disk", wrong, words.Of("The disk of %[1]s is nearly full: %[2]s MB are free.", dir, strconv.FormatUint(free>>20, 10)), "Make room, at least 100 MB: without it nothing you decide can be kept.")
	}
	return Said("disk", fine, roomSaid(free), "")
}

// roomSaid is how many bytes are free, in a number that is read at a glance.
func roomSaid(free uint64) words.Sentence {
	if free >= 10<<30 {
		return words.Of("%s GB are free.", strconv.FormatUint(free>>30, 10))
	}
	return words.Of("%s MB are free.", strconv.FormatUint(free>>20, 10))
}

// Stores looks for what a full disk leaves of a database: a file without a
// byte in it, which no start takes.
func Stores(dir string) []Finding {
	var found []Finding
	for _, path := range []string{filepath.Join(dir, store.FileName), filepath.Join(dir, "control", "control.db")} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			found = append(found, Found("store", wrong, path+" is empty, so what was in it is lost, as can happen when a disk is full.", "Restore a copy of it; or, to start afresh, type: rm "+path))
		}
	}
	return found
}

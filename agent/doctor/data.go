package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"porchlight/agent/store"
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
		return []Finding{Found("data", note, dir+" is not there yet.", "Porchlight makes it when it starts.")}
	case err != nil:
		return []Finding{Found("data", wrong, Sentence(fmt.Errorf("the data directory cannot be read: %w", err)), "Name the right one with --data, or run this as its owner.")}
	}
	if user, ours := ownerOf(info); !ours {
		return []Finding{Found("data", wrong, fmt.Sprintf("%s belongs to %s, and this command runs as somebody else.", dir, user), fmt.Sprintf("Run it as %s, or name a directory of yours with --data.", user))}
	}
	found := Found("data", fine, dir, "")
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		found = Found("data", wrong, fmt.Sprintf("%s can be entered by others (mode %o).", dir, info.Mode().Perm()), "Type: chmod 700 "+dir)
	}
	return []Finding{found, Disk(dir)}
}

// Disk says whether there is room for what the owner decides.
func Disk(dir string) Finding {
	free, err := freeSpace(dir)
	switch {
	case err != nil:
		return Found("disk", note, "How much room there is on the disk of "+dir+" is not known.", "")
	case free < roomWanted:
		return Found("disk", wrong, fmt.Sprintf("The disk of %s is nearly full: %d MB are free.", dir, free>>20), "Make room, at least 100 MB: without it nothing you decide can be kept.")
	}
	return Found("disk", fine, fmt.Sprintf("%d MB are free.", free>>20), "")
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

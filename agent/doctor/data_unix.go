//go:build unix

package doctor

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"porchlight/internal/words"
)

// ownerOf says whose a file is, and whether that is who runs this.
func ownerOf(info fs.FileInfo) (name string, ours bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == uint32(os.Geteuid()) {
		return "", true
	}
	id := strconv.FormatUint(uint64(stat.Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username, false
	}
	return "the user " + id, false
}

// exposed says that others may enter a directory, and what to type then; both are empty
// where they may not.
func exposed(dir string, info fs.FileInfo) (what words.Sentence, mend string) {
	if info.Mode().Perm()&0o077 == 0 {
		return what, ""
	}
	return words.Of("%[1]s can be entered by others (mode %[2]s).", dir, strconv.FormatUint(uint64(info.Mode().Perm()), 8)), "Type: chmod 700 " + dir
}

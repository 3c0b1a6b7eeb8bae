package doctor

import (
	"io/fs"

	"porchlight/internal/private"
	"porchlight/internal/words"
)

// ownerOf is not looked into: a profile's own permissions keep others out.
func ownerOf(fs.FileInfo) (name string, ours bool) { return "", true }

// exposed says that others may enter a directory, and what to type then; both are empty
// where they may not, or where that is not told.
func exposed(dir string, _ fs.FileInfo) (what words.Sentence, mend string) {
	whom, err := private.OpenTo(dir)
	if err != nil || whom == "" {
		return what, ""
	}
	return words.Of("%[1]s can be entered by %[2]s.", dir, whom), `Type: icacls "` + dir + `" /inheritance:r /grant:r "%USERNAME%:(OI)(CI)F" /t`
}

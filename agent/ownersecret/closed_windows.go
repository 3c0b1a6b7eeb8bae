package ownersecret

import (
	"io/fs"

	"porchlight/internal/private"
	"porchlight/internal/words"
)

// closedToOthers asks of a directory who may enter, which what is in it inherits. Wine
// lets files inherit nothing, so of a file it is not asked.
func closedToOthers(path string, info fs.FileInfo) error {
	if !info.IsDir() {
		return nil
	}
	whom, err := private.OpenTo(path)
	if err == nil && whom != "" {
		err = words.Errorf("%[1]w: %[2]s is open to %[3]s. Remove it and start again", ErrExposed, path, whom)
	}
	return err
}

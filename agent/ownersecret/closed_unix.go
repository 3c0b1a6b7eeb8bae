//go:build !windows

package ownersecret

import (
	"fmt"
	"io/fs"

	"porchlight/internal/words"
)

func closedToOthers(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o077 != 0 {
		return words.Errorf("%[1]w: %[2]s has mode %[3]s (chmod go= %[2]s, or remove it and start again)", ErrExposed, path, fmt.Sprintf("%04o", info.Mode().Perm()))
	}
	return nil
}

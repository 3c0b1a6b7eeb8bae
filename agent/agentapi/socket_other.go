//go:build !unix

package agentapi

import (
	"errors"
	"io/fs"
	"os"
)

// CheckSocketDir wants the directory of the owner tier's socket to be there; who
// may enter it is for the permissions of the user's profile to say. The error
// wraps ErrNotRunning when there is no such directory.
func CheckSocketDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotRunning
	}
	if err != nil || !info.IsDir() {
		return Errorf(CodeForbidden, "%s is not a directory the owner's socket can be in.", dir)
	}
	return nil
}

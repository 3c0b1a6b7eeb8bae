//go:build !windows

package agentapi

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkSocket refuses what CheckSocketDir does.
func checkSocket(path string) error { return CheckSocketDir(filepath.Dir(path)) }

// CheckSocketDir refuses a directory of the owner tier's socket that anybody
// else could have made or may enter. The error wraps ErrNotRunning when there is
// no such directory, and is a sentence otherwise.
func CheckSocketDir(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotRunning
	}
	if err != nil {
		return Errorf(CodeForbidden, "The directory of the owner's socket cannot be looked at: %v.", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || stat.Uid != uint32(os.Geteuid()) || info.Mode().Perm() != 0o700 {
		return Errorf(CodeForbidden, "%s is not a directory that only you may enter, so the owner's socket in it is not trusted. Remove it, and start Porchlight anew.", dir)
	}
	return nil
}

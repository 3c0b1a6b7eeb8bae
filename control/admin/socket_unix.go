//go:build unix

package admin

import (
	"errors"
	"os"
	"syscall"
)

// checkDirectory refuses a socket's directory that somebody else than dir's
// owner could have made or may enter.
func checkDirectory(socketDir, dir string) error {
	theirs, err := os.Lstat(socketDir)
	if err != nil {
		return err
	}
	ours, err := os.Stat(dir)
	if err != nil {
		return err
	}
	a, okA := theirs.Sys().(*syscall.Stat_t)
	b, okB := ours.Sys().(*syscall.Stat_t)
	if !okA || !okB || a.Uid != b.Uid || !theirs.IsDir() || theirs.Mode().Perm()&0o077 != 0 {
		return errors.New("the directory of its socket is not to be trusted")
	}
	return nil
}

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package boltfile

import (
	"errors"
	"os"
	"syscall"
)

// LetGo closes a database file that bbolt can no longer be asked to close. Its
// mapping stays until the process ends and would keep the lock, so the lock is
// given back first.
func LetGo(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

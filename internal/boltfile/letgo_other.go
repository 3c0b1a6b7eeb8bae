//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package boltfile

import "os"

// LetGo closes a database file that bbolt can no longer be asked to close. The
// lock may last until the process ends.
func LetGo(f *os.File) error { return f.Close() }

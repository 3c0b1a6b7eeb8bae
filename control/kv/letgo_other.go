//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package kv

import "os"

// letGo closes a database file that bbolt can no longer be asked to close. The
// lock may last until the process ends.
func letGo(f *os.File) error { return f.Close() }

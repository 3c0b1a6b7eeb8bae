// Package durable replaces small files so that nothing is lost: whenever the
// process or the computer is stopped, the file is the old one or the new one,
// and it is the new one once Replace has returned.
package durable

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// Replace makes content the content of the file at path (0600), whose directory
// has to be there.
func Replace(path string, content []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is there any more after the rename
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes the names in a directory durable, for who removed one. Windows
// cannot, and needs not.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

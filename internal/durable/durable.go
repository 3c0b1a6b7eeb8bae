// Package durable replaces small files so that nothing is lost: whenever the
// process or the computer is stopped, the file is the old one or the new one,
// and it is the new one once Replace has returned.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Replace makes content the content of the file at path (0600), whose directory
// has to be there.
func Replace(path string, content []byte) error {
	return ReplaceWith(path, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

// ReplaceWith is Replace with what write writes into the new file, and may read
// back. Where write fails, its error is returned and the old file stays.
func ReplaceWith(path string, write func(*os.File) error) error {
	dir := filepath.Dir(path)
	// The directory may be everybody's: the name is not to be guessed.
	f, err := os.CreateTemp(dir, ".porchlight-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is there any more after the rename
	err = write(f)
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

// SyncDir makes the names in a directory durable, for who renamed or removed one.
// Windows and some file systems cannot.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Plain is an error of files without the operation and the paths, for a sentence that
// names them already.
func Plain(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return link.Err
	}
	return err
}

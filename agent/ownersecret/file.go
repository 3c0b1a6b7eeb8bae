package ownersecret

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"porchlight/internal/durable"
	"porchlight/internal/private"
	"porchlight/internal/words"
)

// maxFile bounds what is read of the secret's file, in bytes.
const maxFile = 1 << 10

// FileStore keeps the secret in a file of its own (0600, in a directory 0700)
// under the person's configuration directory, never inside the data directory.
type FileStore struct {
	dataDir string
	item    item
}

var _ Store = FileStore{}

// File is the store for dataDir where there is no keychain, or the owner chose
// to do without.
func File(dataDir string) FileStore { return FileStore{dataDir: dataDir} }

// Kind implements Store.
func (FileStore) Kind() string { return "file" }

// Path is where the secret is kept.
func (s FileStore) Path() (string, error) {
	name, data, err := entry(s.dataDir)
	if err != nil {
		return "", words.Errorf("cannot tell where %s is kept: %w", s.item.name(), err)
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return "", words.Errorf("cannot tell where %s is kept: %w", s.item.name(), err)
	}
	path := filepath.Join(config, "porchlight", s.item.dir(), s.item.entry(name)+".secret")
	if rel, err := filepath.Rel(data, path); s.item.app() == "" && err == nil && filepath.IsLocal(rel) {
		return "", words.Errorf("secrets would be kept inside the data directory %s, where a copy would carry it away; choose another configuration directory (XDG_CONFIG_HOME) or data directory", data)
	}
	return path, nil
}

// Get implements Store. A file that others may read is refused with ErrExposed.
func (s FileStore) Get(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	path, err := s.Path()
	if err != nil {
		return "", err
	}
	secret, err := read(path, s.item)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", words.Errorf("cannot read %s: %w", s.item.name(), err)
	}
	return secret, nil
}

func read(path string, item item) (string, error) {
	if err := closed(filepath.Dir(path), fs.ModeDir); err != nil {
		return "", err
	}
	if err := closed(path, 0); err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(b))
	if err := item.check(secret); err != nil {
		return "", words.Errorf("%s: %w", path, err)
	}
	return secret, nil
}

// closed wants path to be of the given type, not a link to one, and closed to
// everybody else.
func closed(path string, kind fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != kind {
		return words.Errorf("%s is not what Porchlight put there", path)
	}
	return closedToOthers(path, info)
}

// Set implements Store; after a crash the old secret is there or the new one.
func (s FileStore) Set(ctx context.Context, secret string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.item.check(secret); err != nil {
		return err
	}
	path, err := s.Path()
	if err != nil {
		return err
	}
	if err := write(path, secret); err != nil {
		return words.Errorf("cannot keep %s: %w", s.item.name(), err)
	}
	return nil
}

func write(path, secret string) error {
	dir := filepath.Dir(path)
	if err := private.Dir(dir); err != nil {
		return err
	}
	if err := closed(dir, fs.ModeDir); err != nil {
		return err
	}
	return durable.Replace(path, []byte(secret+"\n"))
}

// Delete implements Store.
func (s FileStore) Delete(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := s.Path()
	if err != nil {
		return err
	}
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	}
	if err == nil {
		err = durable.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return words.Errorf("cannot remove %s: %w", s.item.name(), err)
	}
	return nil
}

package certstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/certmagic"
)

// files is a node's own copy: certmagic's files, each sealed.
type files struct {
	certmagic.FileStorage
	keys *Keys
}

func newFiles(dir string, keys *Keys) *files {
	return &files{certmagic.FileStorage{Path: dir}, keys}
}

// Store implements certmagic.Storage.
func (f *files) Store(ctx context.Context, key string, value []byte) error {
	return f.FileStorage.Store(ctx, key, []byte(f.keys.seal(key, value)))
}

// Load implements certmagic.Storage.
func (f *files) Load(ctx context.Context, key string) ([]byte, error) {
	value, _, err := f.load(ctx, key)
	return value, err
}

func (f *files) load(ctx context.Context, key string) (value []byte, old bool, err error) {
	sealed, err := f.FileStorage.Load(ctx, key)
	if err != nil {
		return nil, false, err
	}
	return f.keys.open(key, string(sealed))
}

// check fails where the copy was sealed by a key that the file does not hold.
func (f *files) check() error {
	return f.each(func(key string) error {
		if _, _, err := f.load(context.Background(), key); errors.Is(err, errKey) {
			return err
		}
		return nil
	})
}

// sealAnew seals by the first key what another one sealed. What does not open is
// removed: it comes again from the store.
func (f *files) sealAnew() error {
	ctx := context.Background()
	return f.each(func(key string) error {
		value, old, err := f.load(ctx, key)
		switch {
		case err != nil:
			return f.Delete(ctx, key)
		case old:
			return f.Store(ctx, key, value)
		}
		return nil
	})
}

func (f *files) each(fn func(key string) error) error {
	keys, err := regular(f.Path)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := fn(key); err != nil {
			return err
		}
	}
	return nil
}

// regular are the files below a directory, as certmagic's keys; none where there is
// no directory.
func regular(dir string) (keys []string, err error) {
	if dir == "" {
		return nil, nil
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == dir:
			return fs.SkipAll
		case err != nil:
			return fmt.Errorf("cannot read this node's certificates: %w", err)
		case !d.Type().IsRegular():
			return nil
		case len(keys) == maxEntries:
			return fmt.Errorf("%s holds more than certificates: remove what does not belong there", dir)
		}
		rel, err := filepath.Rel(dir, path)
		keys = append(keys, filepath.ToSlash(rel))
		return err
	})
	return keys, err
}

// readFiles reads what a node without a key kept: all but locks and what a check of
// the directory left.
func readFiles(dir string) (map[string][]byte, error) {
	keys, err := regular(dir)
	if err != nil {
		return nil, err
	}
	values := map[string][]byte{}
	for _, key := range keys {
		first, _, _ := strings.Cut(key, "/")
		if first != "certificates" && first != "acme" && first != "ocsp" {
			continue
		}
		value, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(key)))
		if err != nil {
			return nil, fmt.Errorf("cannot take over this node's certificates: %w", err)
		}
		values[key] = value
	}
	return values, nil
}

package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// memoryStore is a file of its own that is never waited for and gone when it is closed:
// for tests of what is above it, which then run on what computers have.
type memoryStore struct {
	*boltStore
	dir string
}

func openMemory(ctx context.Context, _ string, opts Options) (Store, error) {
	dir, err := os.MkdirTemp("", "porchlight-rows-")
	if err != nil {
		return nil, fmt.Errorf("cannot create the directory of the store: %w", err)
	}
	opts.unsynced = true
	s, err := openBolt(ctx, filepath.Join(dir, "rows"), opts)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &memoryStore{s.(*boltStore), dir}, nil
}

// Close implements Store.
func (m *memoryStore) Close() error { return errors.Join(m.boltStore.Close(), os.RemoveAll(m.dir)) }

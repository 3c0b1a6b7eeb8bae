package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func init() { roles["full disk"] = fullDisk }

// A disk that fills up refuses updates, keeps what was acknowledged, and works
// again when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if out, err := inRole(t, "full disk", filepath.Join(t.TempDir(), "store.db")).Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// fullDisk limits the size of files of this process, as a full disk would.
func fullDisk(path string) error {
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	room := limit
	limit.Cur = uint64(info.Size()) + 1<<20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	put := func(i int) error {
		return s.Update(context.Background(), func(tx Tx) error { return tx.Put(fmt.Sprintf("n/%03d", i), make([]byte, 64<<10), 0) })
	}
	kept := 0
	for err = put(kept); err == nil; err = put(kept) {
		if kept++; kept > 1000 {
			return errors.New("the disk never filled up: this test shows nothing")
		}
	}
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "kv: commit: ") {
		return fmt.Errorf("the full disk is told as: %w", err)
	}
	check := func() error {
		return s.View(context.Background(), func(tx Tx) error {
			items, err := tx.Scan("n/", "", 10_000)
			if err == nil && len(items) != kept {
				err = fmt.Errorf("%d were acknowledged and %d are kept", kept, len(items))
			}
			return err
		})
	}
	if err := check(); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	if err := put(kept); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	kept++
	if err := check(); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = Open(context.Background(), path, Options{}); err != nil {
		return err
	}
	return errors.Join(check(), s.Close())
}

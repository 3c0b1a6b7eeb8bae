package kv

import (
	"bytes"
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

func init() { roles["full disk at an upgrade"] = fullDiskAtUpgrade }

// Rows of an earlier version are copied before they are changed. Where the disk has no room
// for that they stay as they are, and the same program brings them up to date once there is.
func TestUpgradeOnAFullDisk(t *testing.T) {
	t.Parallel()
	if out, err := inRole(t, "full disk at an upgrade", filepath.Join(t.TempDir(), "store.db")).Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func fullDiskAtUpgrade(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	err = s.Update(ctx, func(tx Tx) error { return errors.Join(tx.Put(versionKey, []byte("2"), 0), tx.Put("a", []byte("1"), 0)) })
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	room := limit
	limit.Cur = 1 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	_, err = Open(ctx, path, Options{})
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		return fmt.Errorf("a full disk is told as %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	after, err := os.ReadFile(path)
	left, readErr := os.ReadDir(filepath.Dir(path))
	if err != nil || readErr != nil || !bytes.Equal(before, after) || len(left) != 1 {
		return fmt.Errorf("it left %v, and other bytes: %v", left, !bytes.Equal(before, after))
	}
	if s, err = Open(ctx, path, Options{}); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	// One that a later version wrote is refused, and whoever wants to go back finds the copy.
	err = s.Update(ctx, func(tx Tx) error { return tx.Put(versionKey, []byte("99"), 0) })
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if _, err := Open(ctx, path, Options{}); err == nil || !strings.Contains(err.Error(), path+".format-2 is one") {
		return fmt.Errorf("the copy is not named: %w", err)
	}
	if err := os.Rename(path+".format-2", path); err != nil {
		return err
	}
	if s, err = Open(ctx, path, Options{}); err != nil {
		return fmt.Errorf("the copy does not open: %w", err)
	}
	return errors.Join(s.View(ctx, func(tx Tx) error { _, err := tx.Get("a"); return err }), s.Close())
}

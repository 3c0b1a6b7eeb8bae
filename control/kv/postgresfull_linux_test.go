package kv

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// PostgreSQL's disk fills up: updates are refused for want of room, what was
// acknowledged is there and can be read, and with room again the same store goes on.
// The disk is a small file system in memory, which only root can make.
func TestPostgresDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	t.Parallel()
	server := startServer(t)
	disk := mountSmall(t, "24m")
	db := server.Database(t)
	programs.Must(t, server.Exec("create tablespace small location '"+disk.dir+"'", "alter database test1 set tablespace small"))
	t.Cleanup(func() { _ = server.Exec("drop database test1 with (force)") }) // before the disk goes
	s := openPG(t, db)
	kept := map[string][]byte{}
	put := func() error {
		key, value := fmt.Sprintf("n/%04d", len(kept)), make([]byte, 64<<10)
		rand.Read(value) // which does not compress
		err := s.Update(t.Context(), func(tx Tx) error { return tx.Put(key, value, 0) })
		if err == nil {
			kept[key] = value
		}
		return err
	}
	check := func() {
		t.Helper()
		err := s.View(t.Context(), func(tx Tx) error {
			items, err := tx.Scan("n/", "", 10_000)
			for _, item := range items {
				if !bytes.Equal(item.Value, kept[item.Key]) {
					t.Errorf("%s is another value than was acknowledged", item.Key)
				}
			}
			if len(items) != len(kept) {
				t.Errorf("%d were acknowledged and %d are kept", len(kept), len(items))
			}
			return err
		})
		programs.Must(t, err)
	}
	var err error
	for err = put(); err == nil; err = put() {
		if len(kept) > 1000 {
			t.Fatal("the disk never filled up: this test shows nothing")
		}
	}
	for range 20 { // and each time it is asked
		if !errors.Is(err, ErrFull) {
			t.Fatalf("the full disk is told as: %v", err)
		}
		err = s.Update(t.Context(), func(tx Tx) error { return tx.Put("large", bytes.Clone(kept["n/0000"]), 0) })
	}
	check()
	disk.resize(t, "64m")
	for range 20 {
		if err := put(); err != nil {
			t.Fatalf("with room again: %v", err)
		}
	}
	check()
}

// smallDisk is a file system in memory.
type smallDisk struct {
	dir, owner string
}

func mountSmall(t *testing.T, size string) smallDisk {
	t.Helper()
	uid, gid, err := pgtest.Owner()
	programs.Must(t, err)
	dir, err := os.MkdirTemp("", "pgfull-") // not TempDir, which only root may enter
	programs.Must(t, err)
	d := smallDisk{dir, fmt.Sprintf("uid=%d,gid=%d,mode=0700", uid, gid)}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+","+d.owner); errors.Is(err, syscall.EPERM) {
		_ = os.Remove(dir)
		t.Skip("root may not mount here")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(syscall.Unmount(dir, syscall.MNT_DETACH), os.Remove(dir)); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d smallDisk) resize(t *testing.T, size string) {
	t.Helper()
	programs.Must(t, syscall.Mount("tmpfs", d.dir, "tmpfs", syscall.MS_REMOUNT, "size="+size+","+d.owner))
}

package boltfile

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// pathVariable makes this test binary a writer, which TestKilledWriter kills.
const pathVariable = "PORCHLIGHT_TEST_PATH"

func TestMain(m *testing.M) {
	if path := os.Getenv(pathVariable); path != "" {
		fmt.Fprintln(os.Stderr, write(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// write changes the database for ever, and prints a line for each transaction.
func write(path string) error {
	db, _, err := Open(path, bolt.Options{}, nil)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for {
		if err := db.Update(func(tx *Tx) error { return change(tx, r, "apps", "deny", "people") }); err != nil {
			return err
		}
		fmt.Println("written")
	}
}

// Weakness: a sum that a kill leaves beside other rows would shut its owner out.
// Checked: after kill -9 at any moment the database opens, and is judged by its sum.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	if err := Ensure(path); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		writer := exec.Command(self)
		writer.Env = append(os.Environ(), pathVariable+"="+path)
		writer.Stderr = os.Stderr
		out, err := writer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		killAt, written := 1+rand.IntN(60), 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if written++; written == killAt {
				if err := writer.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		err = writer.Wait()
		if written < killAt {
			t.Fatalf("the writer ended by itself: %v", err)
		}
		if !judged(t, path) {
			t.Error("the last transaction left no sum, so this test shows nothing")
		}
		db, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

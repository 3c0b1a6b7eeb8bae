package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"porchlight/test/programs"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// smallPage makes small files of many pages.
const smallPage = 1024

// furnished is a database of two commits, its path, and what it held after each.
func furnished(t *testing.T) (path string, before, after map[string]string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	before, after = map[string]string{}, map[string]string{}
	db := programs.Got(bolt.Open(path, 0o600, &bolt.Options{PageSize: smallPage}))(t)
	programs.Must(t, db.Close())
	for round := range 2 { // so that pages are free, too
		maps.Copy(before, after)
		write(t, path, func(tx *Tx) error {
			people, err := tx.CreateBucketIfNotExists([]byte("people"))
			if err != nil {
				return err
			}
			for i := range 40 {
				key, value := fmt.Sprintf("person/%02d", i), fmt.Sprintf("%d at %d", i, round)
				after["people/"+key] = value
				if err := people.Put([]byte(key), []byte(value)); err != nil {
					return err
				}
			}
			_, err = people.NextSequence()
			return err
		})
	}
	return path, before, after
}

func write(t *testing.T, path string, fn func(*Tx) error) {
	t.Helper()
	programs.Got(commit(path, fn))(t)
}

// commit opens the database at path, has fn write, and says which rows it held before,
// of all buckets.
func commit(path string, fn func(*Tx) error) (map[string]string, error) {
	rows := map[string]string{}
	db, _, err := Open(path, bolt.Options{NoSync: true}, allBut("lines"), func(db *DB) error {
		return db.View(func(tx *Tx) error {
			return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
				if bytes.Equal(name, sumBucket) {
					return nil
				}
				return b.ForEach(func(key, value []byte) error {
					rows[string(name)+"/"+string(key)] = string(value)
					return nil
				})
			})
		})
	})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return rows, db.Update(fn)
}

// allBut counts the keys of every bucket but one.
func allBut(name string) Counted {
	return func(bucket, _ []byte) ([]byte, bool) { return nil, string(bucket) != name }
}

func contents(path string) (map[string]string, error) {
	return commit(path, func(*Tx) error { return nil })
}

// alike says whether these are the same rows, but for a letter of a value.
func alike(rows, want map[string]string) bool {
	other := 0
	for key, value := range want {
		now, ok := rows[key]
		if !ok || len(now) != len(value) {
			return false
		}
		if now != value {
			other++
		}
	}
	return len(rows) == len(want) && other <= 1
}

// Weakness: bbolt keeps no sum over its rows, so a file in which damage had changed one
// bit opened with a person missing, or took two things for one page and lost them by the
// next commit. Checked: whichever byte has a bit flipped (in one run every sixth, as all
// take a minute with the race detector), the file opens with every row
// and keeps them over a commit, or it is refused. Two places cannot tell. A letter of a
// value may be another. And the head that the last commit wrote looks, damaged, as power
// that fails in the midst of it leaves it, so the file opens as it was before.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	path, before, after := furnished(t)
	whole := programs.Got(os.ReadFile(path))(t)
	head := 0 // where the newer one is
	const commitOf = pageHeader + 48
	if binary.NativeEndian.Uint64(whole[smallPage+commitOf:]) > binary.NativeEndian.Uint64(whole[commitOf:]) {
		head = smallPage
	}
	more := func(tx *Tx) error {
		for i := range 8 { // of pages that are free
			if err := tx.Bucket([]byte("people")).Put(fmt.Appendf(nil, "z%d", i), make([]byte, 60)); err != nil {
				return err
			}
		}
		return nil
	}
	refused := 0
	for at := rand.IntN(6); at < len(whole); at += 6 {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1 << (at % 8)
		programs.Must(t, os.WriteFile(path, damaged, 0o600))
		rows, err := commit(path, more)
		want := after
		if at >= head+pageHeader && at < head+pageHeader+headLength {
			want = before
		}
		if rows == nil {
			refused++
			continue
		}
		if err != nil || !alike(rows, want) {
			t.Errorf("with a bit of byte %d flipped it opens with %d rows of %d, or others, and then: %v", at, len(rows), len(want), err)
			continue
		}
		rows, err = contents(path)
		if err != nil {
			t.Errorf("with a bit of byte %d flipped it opens once, and after a commit: %v", at, err)
		}
		for key, value := range want {
			if len(rows[key]) != len(value) {
				t.Errorf("with a bit of byte %d flipped a commit takes %s away", at, key)
			}
		}
	}
	if refused < len(after)/6 {
		t.Errorf("of %d bytes %d were refused: this test shows nothing", len(whole), refused)
	}
}

// Whatever is written, and whatever is not in the end, the sum is that of the rows.
func TestSumFollowsRows(t *testing.T) {
	t.Parallel()
	path, _, _ := furnished(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		undone := fmt.Errorf("undone")
		_, err := commit(path, func(tx *Tx) error {
			for range random.IntN(12) {
				b, err := tx.CreateBucketIfNotExists([]byte{'a' + byte(random.IntN(3))})
				if err != nil {
					return err
				}
				key := fmt.Append(nil, random.IntN(8))
				switch random.IntN(6) {
				case 0:
					err = tx.DeleteBucket(b.name)
				case 1:
					_, err = b.NextSequence()
				case 2:
					err = b.Put(key, nil)
				case 3:
					err = b.Put(key, make([]byte, random.IntN(3000)))
				default:
					err = b.Delete(key)
				}
				if err != nil {
					return err
				}
			}
			if random.IntN(4) == 0 {
				return undone
			}
			return nil
		})
		if err != nil && err != undone {
			t.Fatal(err)
		}
	}
}

// A program of before sums, which knows nothing of them, may use the file between.
func TestProgramsOfBeforeSums(t *testing.T) {
	t.Parallel()
	path, _, after := furnished(t)
	for round := range 3 {
		db, err := bolt.Open(path, 0o600, nil)
		programs.Must(t, err)
		key, value := fmt.Sprintf("old/%d", round), "row"
		after["people/"+key] = value
		err = db.Update(func(tx *bolt.Tx) error {
			if round == 0 {
				if err := tx.DeleteBucket(sumBucket); err != nil { // as it made it
					return err
				}
			}
			return tx.Bucket([]byte("people")).Put([]byte(key), []byte(value))
		})
		if err != nil {
			t.Fatal(err)
		}
		programs.Must(t, db.Close())
		if rows, err := contents(path); err != nil || !maps.Equal(rows, after) {
			t.Fatalf("%d rows of %d, %v", len(rows), len(after), err)
		}
		delete(after, "people/person/07")
		write(t, path, func(tx *Tx) error { return tx.Bucket([]byte("people")).Delete([]byte("person/07")) })
		if rows, err := contents(path); err != nil || !maps.Equal(rows, after) {
			t.Fatalf("%d rows of %d, %v", len(rows), len(after), err)
		}
	}
}

// Weakness: a sum over all there is once kept a computer dark for one letter of a line of
// its past, and for a value that was wrong for a moment and then written anew. Checked:
// neither does; a key that decides something does.
func TestWhatMayBeWrong(t *testing.T) {
	t.Parallel()
	path, _, _ := furnished(t)
	write(t, path, func(tx *Tx) error {
		lines, err := tx.CreateBucketIfNotExists([]byte("lines"))
		if err != nil {
			return err
		}
		return lines.Put([]byte("line/1"), []byte("somebody came"))
	})
	damage := func(what, as string) {
		t.Helper()
		raw := programs.Got(os.ReadFile(path))(t)
		if !bytes.Contains(raw, []byte(what)) {
			t.Fatalf("there is no %q", what)
		}
		programs.Must(t, os.WriteFile(path, bytes.ReplaceAll(raw, []byte(what), []byte(as)), 0o600))
	}
	damage("line/1", "line/2")
	damage("somebody came", "somebodx came")
	damage("7 at 1", "8 at 1")
	write(t, path, func(tx *Tx) error { return tx.Bucket([]byte("people")).Put([]byte("person/07"), []byte("7 at 3")) })
	if _, err := contents(path); err != nil {
		t.Error(err)
	}
	damage("person/07", "person/0w")
	if _, err := contents(path); !errors.Is(err, errChanged) {
		t.Errorf("with another key it opens: %v", err)
	}
}

// Weakness: a program of before sums wrote to a file, and bbolt's own tool made it smaller,
// which counts commits from 1 again. The sum from before then passed for a later one's, and a
// sound store was refused after the next commit. Checked: it opens.
func TestCompactedByBboltsTool(t *testing.T) {
	t.Parallel()
	path, _, after := furnished(t)
	for range 9 { // more commits than the tool makes
		write(t, path, func(tx *Tx) error { return tx.Bucket([]byte("people")).Put([]byte("new"), []byte("row")) })
	}
	before, err := bolt.Open(path, 0o600, nil)
	programs.Must(t, err)
	defer before.Close()
	err = before.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("people")).Put([]byte("old"), []byte("row")) })
	if err != nil {
		t.Fatal(err)
	}
	after["people/new"], after["people/old"] = "row", "row"
	small := filepath.Join(t.TempDir(), "small.db")
	db := programs.Got(bolt.Open(small, 0o600, nil))(t)
	programs.Must(t, bolt.Compact(db, before, 0), db.Close())
	for range 2 { // each of which commits
		if rows, err := contents(small); err != nil || !maps.Equal(rows, after) {
			t.Fatalf("%d rows of %d, %v", len(rows), len(after), err)
		}
	}
}

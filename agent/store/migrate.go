package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"

	"porchlight/control/controlapi"
	"porchlight/internal/boltfile"
	"porchlight/internal/durable"
	"porchlight/internal/words"
)

// migrations bring the database of an older version up to date, one after the
// other; a new one goes to the end.
//
// A database counts those it has been through in metaBucket. A program refuses
// one that counts more than it knows. Programs from before there was a count do
// not look at it, so the first three only add: they open what these leave.
var migrations = []func(*boltfile.Tx) error{makeBuckets, nameDirectory, addLostChanges, shareActivity, makeGroups, makeSenders}

// versionKey, in metaBucket, holds how many migrations the database has been
// through, in decimal.
var versionKey = []byte("schema")

// version is that number; 0 is from before they were counted. path is that of the database, where
// tx may read a copy.
func version(tx *boltfile.Tx, path string) (int, error) {
	meta := tx.Bucket(metaBucket)
	if meta == nil || meta.Get(versionKey) == nil {
		return 0, nil
	}
	n, err := strconv.Atoi(string(meta.Get(versionKey)))
	switch {
	case err != nil || n < 0:
		return 0, words.Errorf("it is damaged: its format is %q", string(meta.Get(versionKey)))
	case n > len(migrations):
		err := words.Errorf("a newer version of Porchlight wrote it (format %d, and this one knows %d). Run that version, or restore a copy made before it", n, len(migrations))
		if kept := boltfile.Kept(path, len(migrations)); kept != "" {
			err = words.Errorf("%w: %s is one", err, kept)
		}
		return n, err
	}
	return n, nil
}

// migrate runs what the database has not been through, in one transaction, and makes a copy
// first.
func (s *Store) migrate(path string) error {
	var from int
	fresh := false
	err := s.view(func(tx *boltfile.Tx) (err error) {
		from, err = version(tx, path)
		fresh = tx.Bucket(metaBucket) == nil
		return err
	})
	if err != nil || from == len(migrations) {
		return err
	}
	if !fresh {
		if err := s.db.Keep(path, from); err != nil {
			return words.Errorf("the copy from before it is brought up to date could not be made, and nothing was changed: %w", durable.Plain(err))
		}
	}
	return s.db.Update(func(tx *boltfile.Tx) error {
		for i, step := range migrations[from:] {
			if err := step(tx); err != nil {
				return words.Errorf("cannot bring it to format %d: %w", from+i+1, err)
			}
		}
		return tx.Bucket(metaBucket).Put(versionKey, strconv.AppendInt(nil, int64(len(migrations)), 10))
	})
}

// makeBuckets makes those that are missing, so that readers need no checks.
func makeBuckets(tx *boltfile.Tx) error {
	for _, name := range [][]byte{
		metaBucket, appsBucket, denialsBucket, formersBucket, noticesBucket, undoBucket, activityBucket,
		sessionsBucket, snapshotBucket, denyBucket, pendingBucket, settingsBucket, usersBucket,
	} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return nil
}

// nameDirectory makes the Instance where there is none.
func nameDirectory(tx *boltfile.Tx) error {
	meta := tx.Bucket(metaBucket)
	if meta.Get(instanceIDKey) != nil {
		return nil
	}
	var id [4]byte
	key := make([]byte, 32)
	rand.Read(id[:])
	rand.Read(key)
	return errors.Join(meta.Put(instanceIDKey, []byte(hex.EncodeToString(id[:]))), meta.Put(instanceKeyKey, key))
}

// addLostChanges gives every deny record its PendingChange. They are written
// together now; before, a crash could leave the record alone.
func addLostChanges(tx *boltfile.Tx) error {
	kept, err := readPending(tx)
	if err != nil {
		return err
	}
	last, has := uint64(0), map[string]bool{}
	for _, c := range kept {
		last, has[string(c.Deny().key())] = max(last, c.ID), true
	}
	var snap controlapi.Snapshot
	if raw := tx.Bucket(snapshotBucket).Get(snapshotKey); raw != nil {
		_ = json.Unmarshal(raw, &snap) // a damaged one names no computer
	}
	denied, err := readDenyRecords(tx)
	for _, d := range denied {
		if has[string(d.key())] {
			continue
		}
		last++
		c := PendingChange{ID: last, AccountID: d.AccountID, AppID: d.AppID, GrantID: d.GrantID, Computer: snap.Computer.ID, At: d.At}
		err = errors.Join(err, putPending(tx, c))
	}
	return err
}

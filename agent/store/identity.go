package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"porchlight/control/controlapi"
	"porchlight/internal/boltfile"
)

// BecomeComputer forgets the snapshot, what is kept with it, and every session,
// unless the snapshot is of the computer with this id, which is empty for a
// computer that is connected to nothing. Account ids of one control plane mean
// nothing at another, and a session must not outlive the people it was checked
// against. What the owner approved on this computer stays.
func (s *Store) BecomeComputer(id string) error {
	var other bool
	look := func(tx *boltfile.Tx) error {
		raw := tx.Bucket(snapshotBucket).Get(snapshotKey)
		if raw == nil { // and no key that was made before the first one
			other = tx.Bucket(snapshotBucket).Get(identityKeysKey) != nil
			return nil
		}
		var snap controlapi.Snapshot
		other = json.Unmarshal(raw, &snap) != nil || snap.Computer.ID != id
		return nil
	}
	if err := s.view(look); err != nil || !other {
		return err
	}
	err := s.update(func(tx *boltfile.Tx) error {
		err := tx.DeleteBucket(sessionsBucket)
		for _, key := range [][]byte{snapshotKey, contactKey, silenceKey, controlTimeKey, endedKey, clientsKey, callsKey, identityKeysKey, devicesKey, deviceAuthorityKey} {
			err = errors.Join(err, tx.Bucket(snapshotBucket).Delete(key))
		}
		_, made := tx.CreateBucket(sessionsBucket)
		return errors.Join(err, made)
	})
	if err != nil {
		return fmt.Errorf("forget the people of an earlier connection: %w", err)
	}
	return nil
}

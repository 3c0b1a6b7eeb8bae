package store

import (
	"time"

	"porchlight/internal/boltfile"
)

var denyBucket = []byte("deny")

// DenyRecord is a decision of the owner on this computer that nothing overrides: no
// snapshot, old or new, and no session. It stays until it is taken back.
//
// One of GrantID, PasswordID and AccountID is set; AppID narrows a person's record
// to one app.
type DenyRecord struct {
	AccountID  string    `json:"account,omitempty"`
	AppID      string    `json:"app,omitempty"`
	GrantID    string    `json:"grant,omitempty"`
	PasswordID string    `json:"password,omitempty"` // of an app password
	At         time.Time `json:"at"`
}

func (d DenyRecord) key() []byte {
	key := d.AccountID + "\x00" + d.AppID + "\x00" + d.GrantID
	if d.PasswordID != "" {
		key += "\x00" + d.PasswordID
	}
	return []byte(key)
}

// AddDenyRecord stores one; adding it again keeps the first time.
func (s *Store) AddDenyRecord(d DenyRecord) error {
	return s.update(func(tx *boltfile.Tx) error { return putDeny(tx, d) })
}

func putDeny(tx *boltfile.Tx, d DenyRecord) error {
	b := tx.Bucket(denyBucket)
	if b.Get(d.key()) != nil {
		return nil
	}
	return put(b, d.key(), d)
}

// DenyRecords returns all of them. A damaged record is an error, because to skip it
// would give somebody access again.
func (s *Store) DenyRecords() (all []DenyRecord, err error) {
	err = s.view(func(tx *boltfile.Tx) error { all, err = readDenyRecords(tx); return err })
	return all, err
}

func readDenyRecords(tx *boltfile.Tx) ([]DenyRecord, error) {
	return getAll[DenyRecord](tx.Bucket(denyBucket), "a stored deny record")
}

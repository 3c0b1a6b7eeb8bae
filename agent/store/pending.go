package store

import (
	"errors"
	"time"

	"porchlight/internal/boltfile"
)

var pendingBucket = []byte("pending") // id, 8 bytes big endian → PendingChange

// PendingChange is access that the owner took away on this computer and that the
// control plane may not know of yet. Like DenyRecord it is of a grant, an app
// password, a person, or a person and one app; a DenyRecord of the same stands while
// it is kept.
type PendingChange struct {
	ID         uint64 `json:"id"` // chosen by the caller, growing
	AccountID  string `json:"account,omitempty"`
	AppID      string `json:"app,omitempty"`
	GrantID    string `json:"grant,omitempty"`
	PasswordID string `json:"password,omitempty"`
	// Computer is the id this computer had at its control plane then. Another
	// control plane can do nothing about it; this one may be connected again.
	Computer string `json:"computer,omitempty"`
	// Program says that a program took it away and not the owner.
	Program bool `json:"program,omitempty"`
	// Undo says that it takes an invitation back; see controlapi.Remove.
	Undo bool `json:"undo,omitempty"`
	// Again says of an app that was withdrawn from the person before, so that no group
	// opened it.
	Again bool `json:"again,omitempty"`
	// Sent is true once the control plane has carried it out. Epoch is then the
	// session epoch of a person who was removed.
	Sent  bool      `json:"sent,omitempty"`
	Epoch int64     `json:"epoch,omitempty"`
	At    time.Time `json:"at"`
}

// Deny is the record that shuts out what the change takes away.
func (c PendingChange) Deny() DenyRecord {
	return DenyRecord{AccountID: c.AccountID, AppID: c.AppID, GrantID: c.GrantID, PasswordID: c.PasswordID}
}

// PutPending stores a change, in place of the one with its ID.
func (s *Store) PutPending(c PendingChange) error {
	return s.update(func(tx *boltfile.Tx) error { return putPending(tx, c) })
}

func putPending(tx *boltfile.Tx, c PendingChange) error {
	return put(tx.Bucket(pendingBucket), numbered(c.ID), c)
}

// Withdraws is what no group opens any more by the change; ok is false where it is of
// something else than one app of one person.
func (c PendingChange) Withdraws() (w Withdrawn, ok bool) {
	return Withdrawn{AccountID: c.AccountID, AppID: c.AppID}, c.AccountID != "" && c.AppID != ""
}

// TakeAway stores a change, its deny record and what it withdraws, all or nothing: a record
// alone does not say which control plane has to be told.
func (s *Store) TakeAway(c PendingChange) error {
	d := c.Deny()
	d.At = c.At
	return s.update(func(tx *boltfile.Tx) error {
		err := errors.Join(putDeny(tx, d), putPending(tx, c))
		if w, ok := c.Withdraws(); ok {
			err = errors.Join(err, putWithdrawn(tx, w))
		}
		return err
	})
}

// GiveBack forgets a change and its deny record, both or neither.
func (s *Store) GiveBack(c PendingChange) error {
	return s.update(func(tx *boltfile.Tx) error {
		return errors.Join(tx.Bucket(pendingBucket).Delete(numbered(c.ID)), tx.Bucket(denyBucket).Delete(c.Deny().key()))
	})
}

// RemovePending forgets a change. One that does not exist is no error.
func (s *Store) RemovePending(id uint64) error {
	return s.update(func(tx *boltfile.Tx) error { return tx.Bucket(pendingBucket).Delete(numbered(id)) })
}

// Pending returns all of them, by ID. A damaged one is an error: to skip it would
// leave somebody's access standing elsewhere.
func (s *Store) Pending() (all []PendingChange, err error) {
	err = s.view(func(tx *boltfile.Tx) error { all, err = readPending(tx); return err })
	return all, err
}

func readPending(tx *boltfile.Tx) ([]PendingChange, error) {
	return getAll[PendingChange](tx.Bucket(pendingBucket), "a stored pending change")
}

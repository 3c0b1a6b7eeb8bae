package store

import (
	"encoding/json"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"porchlight/agent/agentapi"
)

// maxToldOfPeople is how many of the notices may be about people, so that a
// program that keeps changing who has what cannot push the others out.
const maxToldOfPeople = MaxNotices / 2

var undoBucket = bucket("undo") // id of the notice, 8 bytes big endian → Undo

// Undo is how to take back what a notice tells of. Kind is that of the notice.
type Undo struct {
	Kind      string   `json:"kind"`
	AccountID string   `json:"account"`
	Apps      []string `json:"apps,omitempty"` // ids that were added or withdrawn
	// Fresh is true where the person could open nothing before.
	Fresh bool `json:"fresh,omitempty"`
}

// AddNotice stores a notice about people, giving it its ID, and how to undo it,
// which may be nil. It takes the place of one with the same text, and of the
// oldest about people where those are too many. It returns all notices, oldest
// first.
func (s *Store) AddNotice(n agentapi.Notice, undo *Undo) ([]agentapi.Notice, error) {
	var notices []agentapi.Notice
	err := s.update(func(tx *bolt.Tx) error {
		kept, err := readNotices(tx)
		if err != nil {
			return err
		}
		ofPeople := slices.DeleteFunc(slices.Clone(kept), func(k agentapi.Notice) bool { return !aboutPeople(k.Kind) })
		if i := slices.IndexFunc(ofPeople, func(k agentapi.Notice) bool { return k.Kind == n.Kind && k.Text == n.Text }); i >= 0 {
			err = dropNotice(tx, ofPeople[i].ID)
		} else if len(ofPeople) >= maxToldOfPeople {
			err = dropNotice(tx, ofPeople[0].ID)
		} else if len(kept) >= MaxNotices {
			err = dropNotice(tx, kept[0].ID)
		}
		if err != nil {
			return err
		}
		if n.ID, err = tx.Bucket(noticesBucket).NextSequence(); err != nil {
			return err
		}
		n.Undo = undo != nil
		if err := putNotice(tx, n); err != nil {
			return err
		}
		if undo != nil {
			raw, err := json.Marshal(undo)
			if err != nil {
				return err
			}
			if err := tx.Bucket(undoBucket).Put(noticeKey(n.ID), raw); err != nil {
				return err
			}
		}
		notices, err = readNotices(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store a notice: %w", err)
	}
	return notices, nil
}

// SettleNotice notes that what a notice tells of was undone, with a sentence to
// add to its text, and returns all notices, oldest first.
func (s *Store) SettleNotice(id uint64, sentence string) ([]agentapi.Notice, error) {
	var notices []agentapi.Notice
	err := s.update(func(tx *bolt.Tx) error {
		raw := tx.Bucket(noticesBucket).Get(noticeKey(id))
		if raw != nil {
			var n agentapi.Notice
			if err := json.Unmarshal(raw, &n); err != nil {
				return fmt.Errorf("the notice %d is damaged: %w", id, err)
			}
			n.Undo, n.Text = false, n.Text+" "+sentence
			if err := putNotice(tx, n); err != nil {
				return err
			}
		}
		if err := tx.Bucket(undoBucket).Delete(noticeKey(id)); err != nil {
			return err
		}
		var err error
		notices, err = readNotices(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("settle a notice: %w", err)
	}
	return notices, nil
}

// UndoOf returns how to undo what a notice tells of; false when it was undone
// already, is too old, or cannot be undone.
func (s *Store) UndoOf(id uint64) (undo Undo, ok bool, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		raw := tx.Bucket(undoBucket).Get(noticeKey(id))
		if raw == nil {
			return nil
		}
		ok = true
		return json.Unmarshal(raw, &undo)
	})
	if err != nil {
		return Undo{}, false, fmt.Errorf("read how to undo the notice %d: %w", id, err)
	}
	return undo, ok, nil
}

func aboutPeople(kind string) bool {
	switch kind {
	case agentapi.NoticeAccepted, agentapi.NoticeUser,
		agentapi.ActivityInvited, agentapi.ActivityGranted, agentapi.ActivityWithdrawn, agentapi.ActivityRemoved:
		return true
	}
	return false
}

func putNotice(tx *bolt.Tx, n agentapi.Notice) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return tx.Bucket(noticesBucket).Put(noticeKey(n.ID), raw)
}

// dropNotice forgets a notice, and how to undo what it tells of.
func dropNotice(tx *bolt.Tx, id uint64) error {
	if err := tx.Bucket(undoBucket).Delete(noticeKey(id)); err != nil {
		return err
	}
	return tx.Bucket(noticesBucket).Delete(noticeKey(id))
}

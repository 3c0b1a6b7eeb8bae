package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"porchlight/internal/boltfile"
)

var (
	sendersBucket    = []byte("senders")    // id → Sender
	deliveriesBucket = []byte("deliveries") // id of the sender and digest → until when, Unix seconds, 8 bytes
)

// Sender is a program of others that the owner named for one app.
type Sender struct {
	ID     string `json:"id"`
	AppID  string `json:"app"`
	Name   string `json:"name"`
	Target string `json:"target"` // the path, with its query, that alone it may post to
	Kind   string `json:"kind"`
	Header string `json:"header,omitempty"` // of agentapi.SenderHMAC
	// Secrets are keys as they sign with, the newest first: one, or two while it is changed.
	Secrets   [][]byte  `json:"secrets"`
	CreatedAt time.Time `json:"created"`
	Until     time.Time `json:"until,omitzero"` // UTC
	EndTold   bool      `json:"endTold,omitempty"`
}

// makeSenders makes the room for them. A program of before would take none of what they
// send; it refuses the store from here on all the same, for it would keep what is revoked.
func makeSenders(tx *boltfile.Tx) error {
	_, err := tx.CreateBucketIfNotExists(sendersBucket)
	_, deliveries := tx.CreateBucketIfNotExists(deliveriesBucket)
	return errors.Join(err, deliveries)
}

// Senders returns all, in the order of their ids.
func (s *Store) Senders() (all []Sender, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		all, err = getAll[Sender](tx.Bucket(sendersBucket), "a sender")
		return err
	})
	return all, err
}

// PutSender keeps a sender, and forgets those with the ids of forget.
func (s *Store) PutSender(one Sender, forget ...string) error {
	return s.update(func(tx *boltfile.Tx) (err error) {
		for _, id := range forget {
			err = errors.Join(err, forgetSender(tx, id))
		}
		return errors.Join(err, put(tx.Bucket(sendersBucket), []byte(one.ID), one))
	})
}

// ForgetSender forgets a sender and what it delivered.
func (s *Store) ForgetSender(id string) error {
	return s.update(func(tx *boltfile.Tx) error { return forgetSender(tx, id) })
}

func forgetSender(tx *boltfile.Tx, id string) error {
	err := tx.Bucket(sendersBucket).Delete([]byte(id))
	_, forgotten := forgetDeliveries(tx, id, func(time.Time) bool { return true })
	return errors.Join(err, forgotten)
}

// Delivery is what one sender sent, by its digest.
type Delivery struct {
	SenderID string
	Digest   [32]byte
}

func (d Delivery) key() []byte { return append([]byte(d.SenderID), d.Digest[:]...) }

// PutDeliveries keeps that all were delivered, until then, but those whose sender is gone.
func (s *Store) PutDeliveries(all []Delivery, until time.Time) error {
	return s.update(func(tx *boltfile.Tx) (err error) {
		for _, d := range all {
			if tx.Bucket(sendersBucket).Get([]byte(d.SenderID)) != nil {
				err = errors.Join(err, tx.Bucket(deliveriesBucket).Put(d.key(), binary.BigEndian.AppendUint64(nil, uint64(until.Unix()))))
			}
		}
		return err
	})
}

// Delivered is until when it is known that something was delivered; false where it is not.
func (s *Store) Delivered(d Delivery) (until time.Time, known bool, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		if raw := tx.Bucket(deliveriesBucket).Get(d.key()); raw != nil {
			until, known = deliveredUntil(raw), true
		}
		return nil
	})
	return until, known, err
}

// ForgetDeliveries forgets what a sender delivered that is over, and counts what is left.
func (s *Store) ForgetDeliveries(senderID string, now time.Time) (left int, err error) {
	err = s.update(func(tx *boltfile.Tx) error {
		left, err = forgetDeliveries(tx, senderID, func(until time.Time) bool { return !now.Before(until) })
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget old deliveries: %w", err)
	}
	return left, nil
}

func forgetDeliveries(tx *boltfile.Tx, senderID string, expired func(until time.Time) bool) (left int, err error) {
	b := tx.Bucket(deliveriesBucket)
	var gone [][]byte
	c := b.Cursor()
	for k, raw := c.Seek([]byte(senderID)); bytes.HasPrefix(k, []byte(senderID)); k, raw = c.Next() {
		if expired(deliveredUntil(raw)) {
			gone = append(gone, bytes.Clone(k))
		} else {
			left++
		}
	}
	for _, k := range gone {
		err = errors.Join(err, b.Delete(k))
	}
	return left, err
}

func deliveredUntil(raw []byte) time.Time { return time.Unix(int64(number(raw)), 0) }

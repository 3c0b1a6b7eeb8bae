package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/boltfile"
)

var sessionsBucket = []byte("sessions")

// SessionKey is the SHA-256 digest of a session cookie's 32 random bytes. The
// cookie itself is stored nowhere.
type SessionKey [32]byte

// Session is one signed-in browser on one host.
type Session struct {
	AppID string `json:"app"` // empty: the launcher's host
	// Own is the own domain that it was made at; empty: the app's own host.
	Own       string    `json:"own,omitempty"`
	AccountID string    `json:"account"`
	Epoch     int64     `json:"epoch"` // the person's, when the session was made
	CreatedAt time.Time `json:"created"`
	SeenAt    time.Time `json:"seen"` // to about an hour
	// Proof is how the person showed who they are: a controlapi.Proof, or access.ProofLocal.
	// Absent: by mail.
	Proof controlapi.Proof `json:"proof,omitempty"`
}

// storedSession is a Session on the disk. A version that knows no own domains takes one that
// was made there for one of an app that there is not, and not for one of the app's own host.
type storedSession Session

const atOwn = "/" // between an own domain and the app, in storedSession.AppID

func (s Session) MarshalJSON() ([]byte, error) {
	if s.Own != "" {
		s.AppID = s.Own + atOwn + s.AppID
	}
	return json.Marshal(storedSession(s))
}

func (s *Session) UnmarshalJSON(raw []byte) error {
	err := json.Unmarshal(raw, (*storedSession)(s))
	if s.Own != "" {
		s.AppID = strings.TrimPrefix(s.AppID, s.Own+atOwn)
	}
	return err
}

// AddSession stores a session and drops the longest unseen ones of the same
// person on the same host beyond keep, which it returns.
func (s *Store) AddSession(key SessionKey, sess Session, keep int) (dropped []SessionKey, err error) {
	type seen struct {
		key  SessionKey
		seen time.Time
	}
	err = s.update(func(tx *boltfile.Tx) error {
		b := tx.Bucket(sessionsBucket)
		if err := put(b, key[:], sess); err != nil {
			return err
		}
		var same []seen
		err := eachSession(b, sess.AccountID, func(k SessionKey, other Session) error {
			if k != key && other.AccountID == sess.AccountID && other.AppID == sess.AppID && other.Own == sess.Own {
				same = append(same, seen{k, other.SeenAt})
			}
			return nil
		})
		if err != nil {
			return err
		}
		slices.SortFunc(same, func(a, b seen) int { return b.seen.Compare(a.seen) })
		for _, h := range same[min(len(same), max(0, keep-1)):] {
			err = errors.Join(err, b.Delete(h.key[:]))
			dropped = append(dropped, h.key)
		}
		return err
	})
	return dropped, err
}

// Session returns a stored session, and whether there is one.
func (s *Store) Session(key SessionKey) (sess Session, ok bool, err error) {
	ok, err = s.load(sessionsBucket, key[:], "a stored session", &sess)
	return sess, ok, err
}

// TouchSessions moves SeenAt of the sessions that still exist.
func (s *Store) TouchSessions(seen map[SessionKey]time.Time) error {
	return s.update(func(tx *boltfile.Tx) error {
		b := tx.Bucket(sessionsBucket)
		for key, at := range seen {
			var sess Session
			if ok, err := get(b, key[:], "a stored session", &sess); err != nil {
				return err
			} else if !ok {
				continue
			}
			sess.SeenAt = at
			if err := put(b, key[:], sess); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteSession ends one session. One that does not exist is no error.
func (s *Store) DeleteSession(key SessionKey) error {
	return s.update(func(tx *boltfile.Tx) error { return tx.Bucket(sessionsBucket).Delete(key[:]) })
}

// DeleteSessions ends every session for which ended is true, and returns their keys. It
// writes nothing when there is none.
func (s *Store) DeleteSessions(ended func(Session) bool) (deleted []SessionKey, err error) {
	collect := func(tx *boltfile.Tx) error {
		deleted = nil
		return eachSession(tx.Bucket(sessionsBucket), "", func(k SessionKey, sess Session) error {
			if ended(sess) {
				deleted = append(deleted, k)
			}
			return nil
		})
	}
	if err := s.view(collect); err != nil || len(deleted) == 0 {
		return nil, err
	}
	err = s.update(func(tx *boltfile.Tx) error {
		err := collect(tx)
		for _, k := range deleted {
			err = errors.Join(err, tx.Bucket(sessionsBucket).Delete(k[:]))
		}
		return err
	})
	return deleted, err
}

// eachSession calls fn for every session, or for all of one account and maybe
// others: everybody's are looked through at each sign-in, and decoding those of
// everybody else is most of that work. A damaged one is handed on as the zero
// Session, which no host and no person matches and every sweep removes.
func eachSession(b *boltfile.Bucket, account string, fn func(SessionKey, Session) error) error {
	var mention []byte // in any record of that account, as it is written
	if account != "" {
		var err error
		if mention, err = json.Marshal(account); err != nil {
			return fmt.Errorf("encode an account: %w", err)
		}
	}
	return b.ForEach(func(k, raw []byte) error {
		var key SessionKey
		if copy(key[:], k) != len(key) {
			return nil
		}
		if !bytes.Contains(raw, mention) {
			return nil
		}
		var sess Session
		if json.Unmarshal(raw, &sess) != nil {
			sess = Session{}
		}
		return fn(key, sess)
	})
}

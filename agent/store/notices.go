package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
	"porchlight/internal/words"
)

// maxToldOfPeople is how many of the notices may be about people, so that a
// program that keeps changing who has what cannot push the others out.
const maxToldOfPeople = maxNotices / 2

// MaxUndos bounds the notices of access given that can be undone and that the owner has
// not seen. They are never dropped to make room, so before one is added it is asked
// whether there is room.
const MaxUndos = maxToldOfPeople * 3 / 4

// maxUndone bounds what is kept of how to undo; of what one notice tells of together each
// can be undone by itself.
const maxUndone = 300

var (
	undoBucket = []byte("undo") // id of the notice, 8 bytes big endian → Undo
	seenKey    = []byte("notices.seen")
)

// Undo is how to take back what a notice is about. Kind is that of the notice.
type Undo struct {
	Kind      string   `json:"kind"`
	AccountID string   `json:"account"`
	Apps      []string `json:"apps,omitempty"` // ids that were added or withdrawn
	// Until is when those that were withdrawn would have ended, if they would.
	Until   map[string]time.Time `json:"until,omitempty"`
	Browser string               `json:"browser,omitempty"` // of a NoticeBrowser, or the passkey of a NoticePasskey
	// SignedIn is when that browser did; zero where it is not known.
	SignedIn time.Time `json:"signedIn,omitzero"`
	ByGroup  []string  `json:"byGroup,omitempty"` // ids that were withdrawn, which groups had opened
	// Newcomer is true where the person could open nothing before.
	Newcomer bool `json:"fresh,omitempty"`
	// Program is what did it, as one process is told from another; empty for
	// one that is not known, and never folded with another.
	Program string `json:"program,omitempty"`
	// Before are the ids of notices that this one took the place of, the latest
	// last: undoing one of them undoes this. Times counts the events it stands for.
	Before []uint64 `json:"before,omitempty"`
	Times  int      `json:"times,omitempty"`
}

// maxBefore bounds Undo.Before. The owner may have looked at one of them minutes
// ago when they click.
const maxBefore = 100

// Join makes u the way to undo what it was to undo and what a notice before it
// is about.
func (u *Undo) Join(id uint64, before Undo) {
	for _, app := range before.Apps {
		if !slices.Contains(u.Apps, app) {
			u.Apps = append(u.Apps, app)
		}
	}
	for app, at := range before.Until {
		if u.Until == nil {
			u.Until = map[string]time.Time{}
		}
		u.Until[app] = at
	}
	u.Newcomer = u.Newcomer || before.Newcomer
	u.ByGroup = append(u.ByGroup, before.ByGroup...)
	u.Before = append(slices.Clone(before.Before), id)
	u.Before = u.Before[max(0, len(u.Before)-maxBefore):]
	u.Times = max(before.Times, 1) + 1
}

// AddNotice stores a notice about people, giving it its ID, and how to undo it,
// which may be nil. It takes the place of those that undo names as before it, of
// one with the same text, and of the oldest about people where those are too many;
// one that MustStay stays. It returns all notices, oldest first.
//
// It takes the place of those of with, too, which can each be undone as before; so can
// what undo says, and the notice, which tells of all, cannot.
func (s *Store) AddNotice(n agentapi.Notice, undo *Undo, with []uint64) ([]agentapi.Notice, error) {
	return s.changeNotices("store a notice", func(tx *boltfile.Tx) (err error) {
		if undo != nil {
			for _, id := range undo.Before {
				err = errors.Join(err, dropNotice(tx, id))
			}
		}
		for _, id := range with {
			err = errors.Join(err, tx.Bucket(noticesBucket).Delete(numbered(id)))
		}
		if err = errors.Join(err, makeRoom(tx, n)); err != nil {
			return err
		}
		if n.ID, err = tx.Bucket(noticesBucket).NextSequence(); err != nil {
			return err
		}
		n.Undo = undo != nil && len(with) == 0
		err = putNotice(tx, n)
		if undo != nil {
			err = errors.Join(err, put(tx.Bucket(undoBucket), numbered(n.ID), undo))
		}
		return errors.Join(err, forgetUndos(tx))
	})
}

// MarkNoticeUndone notes that what a notice is about was undone, with a sentence to
// add to its text and its words, and returns all notices, oldest first.
func (s *Store) MarkNoticeUndone(id uint64, said words.Sentence) ([]agentapi.Notice, error) {
	return s.changeNotices("mark a notice undone", func(tx *boltfile.Tx) error {
		var n agentapi.Notice
		_, err := get(tx.Bucket(noticesBucket), numbered(id), "a notice", &n)
		if n.Undo { // and not one that tells of others, too
			n.Undo, n.Text = false, n.Text+" "+said.String()
			if len(n.Words) > 0 { // one of an earlier version has none
				n.Words = append(n.Words, said)
			}
			err = errors.Join(err, putNotice(tx, n))
		}
		return errors.Join(err, tx.Bucket(undoBucket).Delete(numbered(id)))
	})
}

// makeRoom drops the notice that a new one about people takes the place of, if
// any.
func makeRoom(tx *boltfile.Tx, n agentapi.Notice) error {
	kept, err := readNotices(tx)
	if err != nil {
		return err
	}
	seen := seenNotices(tx)
	var ofPeople []agentapi.Notice
	for _, k := range kept {
		if !aboutPeople(k.Kind) {
			continue
		}
		if k.Kind == n.Kind && k.Text == n.Text && !MustStay(k, seen) {
			return dropOlder(tx, k)
		}
		ofPeople = append(ofPeople, k)
	}
	if len(ofPeople) >= maxToldOfPeople {
		if dropped, err := dropOldest(tx, ofPeople, seen); dropped || err != nil {
			return err
		}
	}
	if len(kept) < maxNotices {
		return nil
	}
	if dropped, err := dropOldest(tx, kept, seen); dropped || err != nil {
		return err
	}
	return errors.New("every notice that is kept waits for the owner")
}

// forgetUndos drops the oldest ways to undo that are too many and have no notice.
func forgetUndos(tx *boltfile.Tx) error {
	notices, err := readNotices(tx)
	if err != nil {
		return err
	}
	b := tx.Bucket(undoBucket)
	c, many := b.Cursor(), -maxUndone
	for key, _ := c.First(); key != nil; key, _ = c.Next() {
		many++
	}
	var drop [][]byte
	for key, _ := c.First(); key != nil && len(drop) < many; key, _ = c.Next() {
		if !slices.ContainsFunc(notices, func(n agentapi.Notice) bool { return n.Undo && slices.Equal(numbered(n.ID), key) }) {
			drop = append(drop, slices.Clone(key))
		}
	}
	for _, key := range drop {
		err = errors.Join(err, b.Delete(key))
	}
	return err
}

// MustStay says whether a notice has to wait for the owner: it tells of access that was
// given, can be undone, and they have not seen it.
func MustStay(n agentapi.Notice, seen uint64) bool {
	return n.Undo && n.Kind != agentapi.ActivityWithdrawn && n.Kind != agentapi.NoticeBrowser && n.Kind != agentapi.NoticePasskey && n.ID > seen
}

// dropOldest drops the oldest of notices that need not stay.
func dropOldest(tx *boltfile.Tx, notices []agentapi.Notice, seen uint64) (dropped bool, err error) {
	i := slices.IndexFunc(notices, func(n agentapi.Notice) bool { return !MustStay(n, seen) })
	if i < 0 {
		return false, nil
	}
	return true, dropOlder(tx, notices[i])
}

// dropOlder makes room for another notice. What one that tells of several people can be
// undone by stays; see forgetUndos.
func dropOlder(tx *boltfile.Tx, n agentapi.Notice) error {
	if n.Undo {
		return dropNotice(tx, n.ID)
	}
	return tx.Bucket(noticesBucket).Delete(numbered(n.ID))
}

// SeenNotices is the id of the newest notice that the owner has seen; ok is false
// in a store of a version that did not keep it.
func (s *Store) SeenNotices() (id uint64, ok bool, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		id, ok = seenNotices(tx), tx.Bucket(metaBucket).Get(seenKey) != nil
		return nil
	})
	return id, ok, err
}

// SeeNotices notes that the owner has seen the notices up to id.
func (s *Store) SeeNotices(id uint64) error {
	return s.update(func(tx *boltfile.Tx) error { return tx.Bucket(metaBucket).Put(seenKey, numbered(id)) })
}

func seenNotices(tx *boltfile.Tx) uint64 { return number(tx.Bucket(metaBucket).Get(seenKey)) }

// UndoOf returns how to undo what a notice is about, and the notice that stands for
// it now; false when it was undone already, is too old, or cannot be undone.
func (s *Store) UndoOf(id uint64) (now uint64, undo Undo, ok bool, err error) {
	if ok, err = s.load(undoBucket, numbered(id), "how to undo a notice", &undo); ok || err != nil {
		return id, undo, ok, err
	}
	return s.findUndo(func(_ uint64, u Undo) bool { return slices.Contains(u.Before, id) })
}

// FoldOf finds the unseen notice that one about the same change by the same
// program to the same person may take the place of.
func (s *Store) FoldOf(n Undo) (id uint64, undo Undo, ok bool, err error) {
	if n.Program == "" {
		return 0, Undo{}, false, nil
	}
	seen, _, err := s.SeenNotices()
	if err != nil {
		return 0, Undo{}, false, err
	}
	return s.findUndo(func(at uint64, u Undo) bool {
		return at > seen && u.Kind == n.Kind && u.AccountID == n.AccountID && u.Program == n.Program
	})
}

func (s *Store) findUndo(is func(id uint64, u Undo) bool) (id uint64, undo Undo, ok bool, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		return tx.Bucket(undoBucket).ForEach(func(key, raw []byte) error {
			var u Undo
			if err := json.Unmarshal(raw, &u); err != nil {
				return err
			}
			if found := number(key); is(found, u) {
				id, undo, ok = found, u, true
			}
			return nil
		})
	})
	if err != nil {
		return 0, Undo{}, false, fmt.Errorf("read how to undo a notice: %w", err)
	}
	return id, undo, ok, nil
}

func aboutPeople(kind string) bool {
	switch kind {
	case agentapi.NoticeAccepted, agentapi.NoticeUser, agentapi.NoticeEnded, agentapi.NoticeFirstVisit, agentapi.NoticeBrowser, agentapi.NoticePasskey, agentapi.NoticeSenderFull, agentapi.ActivitySenderEnded,
		agentapi.ActivityInvited, agentapi.ActivityGiven, agentapi.ActivityWithdrawn, agentapi.ActivityRemoved:
		return true
	}
	return false
}

func readNotices(tx *boltfile.Tx) ([]agentapi.Notice, error) {
	return getAll[agentapi.Notice](tx.Bucket(noticesBucket), "a notice")
}

func putNotice(tx *boltfile.Tx, n agentapi.Notice) error {
	return put(tx.Bucket(noticesBucket), numbered(n.ID), n)
}

// changeNotices runs fn, which does what it is called, in one write transaction, and
// returns the notices as they are afterwards, oldest first.
func (s *Store) changeNotices(what string, fn func(*boltfile.Tx) error) (notices []agentapi.Notice, err error) {
	err = s.update(func(tx *boltfile.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		notices, err = readNotices(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return notices, nil
}

// dropNotice forgets a notice, and how to undo what it is about.
func dropNotice(tx *boltfile.Tx, id uint64) error {
	return errors.Join(tx.Bucket(undoBucket).Delete(numbered(id)), tx.Bucket(noticesBucket).Delete(numbered(id)))
}

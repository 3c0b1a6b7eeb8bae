package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
)

const (
	// ActivityLife is how long a line of activity is kept.
	ActivityLife = 90 * 24 * time.Hour

	// MaxActivity is how many lines are kept.
	MaxActivity = 50_000

	// A fifth of them is for whatever is no visit: neither pushes the other
	// out of its share, and each may use what the other leaves free.
	decisionsShare = 5
)

// Both buckets hold agentapi.Activity by a number that only grows, 8 bytes big
// endian: the order things happened in, whatever the clock said. It is the sequence of
// the first, for both. Visits are in the first, all else in the second.
var (
	activityBucket  = []byte("activity")
	decisionsBucket = []byte("activity.decisions")
)

// activityCounts says how many lines are in each bucket. They are counted once, and again
// after a write that failed. mu guards all of it, and is held while they change.
type activityCounts struct {
	mu                sync.Mutex
	most              uint64 // MaxActivity but in tests
	known             bool
	visits, decisions uint64
}

// share is one of the two buckets in a transaction that changes it.
type share struct {
	lines *boltfile.Bucket
	count *uint64
	own   uint64 // lines that the other never pushes out
}

// changeActivity runs fn in one write transaction.
func (s *Store) changeActivity(fn func(visits, decisions *share) error) error {
	counts := &s.activity
	counts.mu.Lock()
	defer counts.mu.Unlock()
	most := counts.most
	err := s.update(func(tx *boltfile.Tx) error {
		visits := &share{lines: tx.Bucket(activityBucket), count: &counts.visits, own: most - most/decisionsShare}
		decisions := &share{lines: tx.Bucket(decisionsBucket), count: &counts.decisions, own: most / decisionsShare}
		if !counts.known {
			for _, s := range []*share{visits, decisions} {
				*s.count = uint64(s.lines.Stats().KeyN)
			}
		}
		return fn(visits, decisions)
	})
	counts.known = err == nil
	return err
}

// put keeps a line under the number it has.
func (s *share) put(line agentapi.Activity) error {
	key := numbered(line.ID)
	line.ID, line.At = 0, line.At.UTC()
	return put(s.lines, key, line)
}

// drop drops the oldest lines while old says so of a line that comes after n others
// that go. The keys are gathered first: bbolt looks again at all that is gone already
// to find what is the first now.
func (s *share) drop(old func(n uint64, raw []byte) bool) error {
	var keys [][]byte
	c := s.lines.Cursor()
	for k, raw := c.First(); k != nil && old(uint64(len(keys)), raw); k, raw = c.Next() {
		keys = append(keys, k)
	}
	for _, k := range keys {
		if err := s.lines.Delete(k); err != nil {
			return err
		}
	}
	*s.count -= uint64(len(keys))
	return nil
}

// AddActivity appends lines, oldest first, in one transaction, and drops what is
// too old or too much. A line that FoldActivity can count in with one of the same
// hour is counted there.
func (s *Store) AddActivity(lines ...agentapi.Activity) error {
	if len(lines) == 0 {
		return nil
	}
	err := s.changeActivity(func(visits, decisions *share) error {
		for _, line := range lines {
			to := decisions
			if agentapi.GroupOf(line.Kind) == agentapi.GroupVisits {
				to = visits
			} else if folded, err := decisions.fold(line); err != nil || folded {
				if err != nil {
					return err
				}
				continue
			}
			var err error
			if line.ID, err = visits.lines.NextSequence(); err != nil {
				return err
			}
			if err := to.put(line); err != nil {
				return err
			}
			*to.count++
		}
		return dropActivity(visits, decisions, lines[len(lines)-1].At.Add(-ActivityLife))
	})
	if err != nil {
		return fmt.Errorf("keep the activity: %w", err)
	}
	return nil
}

// SweepActivity drops what is older than ActivityLife at now. It writes nothing
// when nothing is.
func (s *Store) SweepActivity(now time.Time) error {
	cutoff, old := now.Add(-ActivityLife), false
	err := s.view(func(tx *boltfile.Tx) error {
		for _, name := range [][]byte{activityBucket, decisionsBucket} {
			_, raw := tx.Bucket(name).Cursor().First()
			old = old || raw != nil && activityAt(raw).Before(cutoff)
		}
		return nil
	})
	if err != nil || !old {
		return err
	}
	return s.changeActivity(func(visits, decisions *share) error { return dropActivity(visits, decisions, cutoff) })
}

// dropActivity takes lines away from the old ends until the first of each is not
// before the cutoff, and together they are not too many.
func dropActivity(visits, decisions *share, cutoff time.Time) error {
	for _, s := range []*share{visits, decisions} {
		if err := s.drop(func(_ uint64, raw []byte) bool { return activityAt(raw).Before(cutoff) }); err != nil {
			return err
		}
	}
	all := *visits.count + *decisions.count
	most := visits.own + decisions.own
	if all <= most {
		return nil
	}
	tooMany := all - most
	ofVisits := min(tooMany, *visits.count-min(*visits.count, visits.own))
	return errors.Join(
		visits.drop(func(n uint64, _ []byte) bool { return n < ofVisits }),
		decisions.drop(func(n uint64, _ []byte) bool { return n < tooMany-ofVisits }))
}

// activityAt is the time of a line; a damaged one is as old as can be.
func activityAt(raw []byte) time.Time {
	var line struct {
		At time.Time `json:"at"`
	}
	if json.Unmarshal(raw, &line) != nil {
		return time.Time{}
	}
	return line.At
}

// ClearActivity forgets all lines. Their numbers do not return.
func (s *Store) ClearActivity() error {
	all := func(uint64, []byte) bool { return true }
	return s.changeActivity(func(visits, decisions *share) error { return errors.Join(visits.drop(all), decisions.drop(all)) })
}

// shareActivity is a migration: what is no visit goes to a bucket of its own, under
// its number.
func shareActivity(tx *boltfile.Tx) error {
	decisions, err := tx.CreateBucketIfNotExists(decisionsBucket)
	if err != nil {
		return err
	}
	all := tx.Bucket(activityBucket)
	var moved [][]byte
	err = all.ForEach(func(key, raw []byte) error {
		var line agentapi.Activity
		if json.Unmarshal(raw, &line) != nil || agentapi.GroupOf(line.Kind) == agentapi.GroupVisits {
			return nil // a damaged line stays, and goes when it is the oldest
		}
		moved = append(moved, bytes.Clone(key))
		return decisions.Put(bytes.Clone(key), bytes.Clone(raw))
	})
	for _, key := range moved {
		err = errors.Join(err, all.Delete(key))
	}
	return err
}

package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"porchlight/agent/agentapi"
)

const (
	// ActivityLife is how long a line of activity is kept.
	ActivityLife = 90 * 24 * time.Hour

	// MaxActivity is how many lines are kept; the oldest go first.
	MaxActivity = 10_000
)

// activityBucket holds agentapi.Activity by a number that only grows, 8 bytes
// big endian: the order things happened in, whatever the clock said. Lines are
// taken away only from the old end, so the first and last number tell how many
// there are.
var activityBucket = []byte("activity")

// AddActivity appends lines, oldest first, in one transaction, and drops what is
// too old or too much.
func (s *Store) AddActivity(lines ...agentapi.Activity) error {
	if len(lines) == 0 {
		return nil
	}
	err := s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(activityBucket)
		for _, line := range lines {
			id, err := b.NextSequence()
			if err != nil {
				return err
			}
			line.At = line.At.UTC()
			raw, err := json.Marshal(line)
			if err != nil {
				return err
			}
			if err := b.Put(binary.BigEndian.AppendUint64(nil, id), raw); err != nil {
				return err
			}
		}
		return dropActivity(b, lines[len(lines)-1].At.Add(-ActivityLife))
	})
	if err != nil {
		return fmt.Errorf("keep the activity: %w", err)
	}
	return nil
}

// SweepActivity drops what is older than ActivityLife at now. It writes nothing
// when nothing is.
func (s *Store) SweepActivity(now time.Time) error {
	oldest := now
	err := s.view(func(tx *bolt.Tx) error {
		if _, raw := tx.Bucket(activityBucket).Cursor().First(); raw != nil {
			oldest = activityAt(raw)
		}
		return nil
	})
	if err != nil || !oldest.Before(now.Add(-ActivityLife)) {
		return err
	}
	return s.update(func(tx *bolt.Tx) error {
		return dropActivity(tx.Bucket(activityBucket), now.Add(-ActivityLife))
	})
}

// dropActivity takes lines away from the old end until the first is neither
// before the cutoff nor one too many.
func dropActivity(b *bolt.Bucket, cutoff time.Time) error {
	c := b.Cursor()
	last, _ := c.Last()
	if last == nil {
		return nil
	}
	newest := binary.BigEndian.Uint64(last)
	for k, raw := c.First(); k != nil; k, raw = c.First() {
		count := newest - binary.BigEndian.Uint64(k) + 1
		if count <= MaxActivity && !activityAt(raw).Before(cutoff) {
			return nil
		}
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
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

// Activity returns the newest lines, newest first, at most limit. A damaged line
// is left out: it is a record for reading, and nothing hangs on it.
func (s *Store) Activity(limit int) ([]agentapi.Activity, error) {
	lines := []agentapi.Activity{}
	err := s.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(activityBucket).Cursor()
		for k, raw := c.Last(); k != nil && len(lines) < limit; k, raw = c.Prev() {
			var line agentapi.Activity
			if json.Unmarshal(raw, &line) == nil {
				lines = append(lines, line)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the activity: %w", err)
	}
	return lines, nil
}

// ClearActivity forgets all lines. Their numbers do not return.
func (s *Store) ClearActivity() error {
	return s.update(func(tx *bolt.Tx) error {
		c := tx.Bucket(activityBucket).Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.First() {
			if err := c.Delete(); err != nil {
				return err
			}
		}
		return nil
	})
}

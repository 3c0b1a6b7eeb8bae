package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	bolt "go.etcd.io/bbolt"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
)

// ActivityQuery is what part of the activity is wanted, newest first.
type ActivityQuery struct {
	Before uint64                       // lines with a smaller number only; 0 for all
	Limit  int                          // lines, at most
	Scan   int                          // lines to look at, at most; 0 for all
	Group  string                       // of agentapi.GroupOf; empty for all
	Keep   func(agentapi.Activity) bool // nil for all
}

// Activity returns the newest lines, newest first, at most limit.
func (s *Store) Activity(limit int) ([]agentapi.Activity, error) {
	lines, _, err := s.ActivityPage(ActivityQuery{Limit: limit})
	return lines, err
}

// ActivityPage returns the lines asked for, and from which number to go on before; 0
// where there is nothing more. A damaged line is left out: it is a record for
// reading, and nothing hangs on it.
func (s *Store) ActivityPage(q ActivityQuery) (lines []agentapi.Activity, next uint64, err error) {
	lines = []agentapi.Activity{}
	if q.Before == 0 {
		q.Before = math.MaxUint64
	}
	err = s.view(func(tx *boltfile.Tx) error {
		r := newestFirst(tx, q)
		for seen := 0; len(lines) < q.Limit; seen++ {
			key, raw := r.next()
			if key == nil {
				return nil
			}
			var line agentapi.Activity
			good := json.Unmarshal(raw, &line) == nil
			line.ID = number(key)
			if good && (q.Group == "" || agentapi.GroupOf(line.Kind) == q.Group) && (q.Keep == nil || q.Keep(line)) {
				lines = append(lines, line)
			}
			if len(lines) == q.Limit || q.Scan > 0 && seen+1 == q.Scan {
				if r.more() {
					next = line.ID
				}
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read the activity: %w", err)
	}
	return lines, next, nil
}

// reverse reads the lines of both buckets in one order, the newest first.
type reverse []reading

type reading struct {
	cursor   *bolt.Cursor
	key, raw []byte // that come next; nil at the end
}

func newestFirst(tx *boltfile.Tx, q ActivityQuery) (r reverse) {
	for _, name := range [][]byte{activityBucket, decisionsBucket} {
		if visits := bytes.Equal(name, activityBucket); q.Group != "" && visits != (q.Group == agentapi.GroupVisits) {
			continue
		}
		c := tx.Bucket(name).Cursor()
		// Seek finds the first that is not before; what was asked for is before that.
		step := c.Prev
		if k, _ := c.Seek(numbered(q.Before)); k == nil {
			step = c.Last
		}
		k, raw := step()
		r = append(r, reading{c, k, raw})
	}
	return r
}

func (r reverse) next() (key, raw []byte) {
	newest := 0
	for i := range r {
		if bytes.Compare(r[i].key, r[newest].key) > 0 {
			newest = i
		}
	}
	from := &r[newest]
	key, raw = from.key, from.raw
	if key != nil {
		from.key, from.raw = from.cursor.Prev()
	}
	return key, raw
}

func (r reverse) more() bool {
	for i := range r {
		if r[i].key != nil {
			return true
		}
	}
	return false
}

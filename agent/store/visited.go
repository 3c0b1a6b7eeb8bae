package store

import (
	"encoding/json"
	"fmt"
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
)

// visitedBucket has a key for each member and app that the member has opened.
var visitedBucket = []byte("visited")

// maxVisited bounds them: of one more nobody can tell any more whether it is the first.
const maxVisited = 50_000

// Visited is a member at an app.
type Visited struct {
	AccountID, AppID string
	Email, Label     string // as the activity has them
}

// FirstVisits keeps who has opened what, and returns those who had not before. Visits
// from before this was kept are found in the activity, which must not have these yet.
func (s *Store) FirstVisits(all []Visited) (first []Visited, err error) {
	if known, err := s.haveVisited(all); known || err != nil {
		return nil, err
	}
	err = s.update(func(tx *boltfile.Tx) error {
		first = nil
		kept, err := tx.CreateBucketIfNotExists(visitedBucket)
		if err != nil {
			return err
		}
		for _, v := range all {
			if kept.Get(v.key()) != nil || kept.Sequence() >= maxVisited {
				continue
			}
			if err := kept.Put(v.key(), []byte{1}); err != nil {
				return err
			}
			if _, err := kept.NextSequence(); err != nil {
				return err
			}
			if !openedBefore(tx, v) {
				first = append(first, v)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("keep who has opened what: %w", err)
	}
	return first, nil
}

func (v Visited) key() []byte { return []byte(v.AccountID + "\x00" + v.AppID) }

// haveVisited says whether all have been there before, which writes nothing.
func (s *Store) haveVisited(all []Visited) (known bool, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		kept := tx.Bucket(visitedBucket)
		known = kept != nil && !slices.ContainsFunc(all, func(v Visited) bool { return kept.Get(v.key()) == nil })
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("read who has opened what: %w", err)
	}
	return known, nil
}

// openedBefore looks for a visit in the activity.
func openedBefore(tx *boltfile.Tx, v Visited) bool {
	lines := tx.Bucket(activityBucket).Cursor()
	for k, raw := lines.Last(); k != nil; k, raw = lines.Prev() {
		var line agentapi.Activity
		if json.Unmarshal(raw, &line) == nil && line.Kind == agentapi.ActivityOpened && line.Email == v.Email && line.App == v.Label {
			return true
		}
	}
	return false
}

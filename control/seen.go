package control

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"porchlight/control/kv"
)

// writeSeen writes sightings, but what another node has written a later one for.
// They are put without a transaction, which would collide with whoever changes one of so
// many rows. So the rows are read before: two nodes that write one at the very same moment
// can still leave the earlier one, until the next minute. And the rows of computers that
// were removed meanwhile are taken out again, once no agent of theirs is told here: then
// they are noted a last time.
func (s *Agents) writeSeen(ctx context.Context, ids []string, all map[string]time.Time) error {
	latest, err := s.latestSeen(ctx, ids, all)
	if err == nil && len(latest) > 0 {
		err = s.putSeen(ctx, latest, all)
	}
	return err
}

// latestSeen are those computers for which the store has no later sighting. One that is
// the same was written by a try that failed afterwards.
func (s *Agents) latestSeen(ctx context.Context, ids []string, all map[string]time.Time) (latest []string, err error) {
	return viewedOf(ctx, s.core, kv.Rows{Keys: keysOf(ids, keyComputerSeen)}, func(tx *txn) (latest []string, err error) {
		for _, id := range ids {
			if written, _ := get[time.Time](tx, keyComputerSeen(id)); !all[id].Before(written) {
				latest = append(latest, id)
			}
		}
		return latest, nil
	})
}

func (s *Agents) putSeen(ctx context.Context, ids []string, all map[string]time.Time) error {
	rows := make([]kv.Item, len(ids))
	for i, id := range ids {
		value, err := json.Marshal(all[id])
		if err != nil {
			return err
		}
		rows[i] = kv.Item{Key: keyComputerSeen(id), Value: value}
	}
	if err := s.store.PutAll(ctx, 0, rows...); err != nil {
		return err
	}
	return s.forgetGone(ctx, ids)
}

// forgetGone deletes the sightings of those computers that are not there.
func (s *Agents) forgetGone(ctx context.Context, ids []string) error {
	ids = slices.DeleteFunc(slices.Clone(ids), s.Feed.Watches)
	if len(ids) == 0 {
		return nil
	}
	keys := keysOf(ids, keyComputer)
	values, err := viewedOf(ctx, s.core, kv.Rows{Keys: keys}, func(tx *txn) ([][]byte, error) { return tx.getAll(keys...), nil })
	if err != nil {
		return err
	}
	var gone []string
	for i, value := range values {
		if value == nil {
			gone = append(gone, ids[i])
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return s.update(ctx, func(tx *txn) error { tx.delete(keysOf(gone, keyComputerSeen)...); return nil })
}

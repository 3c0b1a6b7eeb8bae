package control

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"porchlight/control/kv"
)

// When a computer's agent was last here is held in memory and written in batches: once
// a minute at most, many computers in one transaction, and when the service ends. A
// crash loses a minute of it, which nobody decides by.
const (
	seenEvery = time.Minute
	// seenGather is how long others who come at once may join a batch.
	seenGather = time.Second
	// seenBatch is how many computers are read and written at once.
	seenBatch = kv.MaxRows
	// seenAtEnd bounds the last writing.
	seenAtEnd = 5 * time.Second
)

// sightings are those that are not written yet.
type sightings struct {
	mu   sync.Mutex
	at   map[string]time.Time // by computer; guarded by mu
	some chan struct{}        // there are some
}

func newSightings() *sightings {
	return &sightings{at: map[string]time.Time{}, some: make(chan struct{}, 1)}
}

func (s *sightings) note(computerID string, at time.Time) {
	s.mu.Lock()
	if at.After(s.at[computerID]) {
		s.at[computerID] = at.UTC()
	}
	s.mu.Unlock()
	select {
	case s.some <- struct{}{}:
	default: // it is to look already
	}
}

// last is the later of a sighting that was written and one that is to be.
func (s *sightings) last(computerID string, written time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.at[computerID]; at.After(written) {
		return at
	}
	return written
}

// pending are those to be written.
func (s *sightings) pending() map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.at)
}

// written forgets these sightings, but for those that were followed by another.
func (s *sightings) written(ids []string, at map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.at[id].Equal(at[id]) {
			delete(s.at, id)
		}
	}
}

// runSeen writes sightings.
func (s *Agents) runSeen(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	var last time.Time
	for {
		select {
		case <-s.seen.some:
		case <-ctx.Done():
			return s.writeLastSeen(ctx)
		}
		timer.Reset(max(seenGather, seenEvery-time.Since(last)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return s.writeLastSeen(ctx)
		}
		last = time.Now()
		if err := s.writeSeen(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("noting when computers were seen failed; it is tried again", "err", err)
			select {
			case s.seen.some <- struct{}{}:
			default:
			}
		}
	}
}

// writeLastSeen writes what is left, and returns the error of ctx.
func (s *Agents) writeLastSeen(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), seenAtEnd)
	defer cancel()
	if err := s.writeSeen(last); err != nil {
		s.log.Warn("noting when computers were seen failed", "err", err)
	}
	return ctx.Err()
}

// writeSeen writes all there are, but what another node has written a later one for.
// They are put without a transaction, which would collide with whoever changes one of so
// many rows. So the rows are read before: two nodes that write one at the very same moment
// can still leave the earlier one, until the next minute. And the rows of computers that
// were removed meanwhile are taken out again, once no agent of theirs is told here: then
// they are noted a last time.
func (s *Agents) writeSeen(ctx context.Context) error {
	all := s.seen.pending()
	for some := range slices.Chunk(slices.Collect(maps.Keys(all)), seenBatch) {
		latest, err := s.latestSeen(ctx, some, all)
		if err == nil && len(latest) > 0 {
			err = s.putSeen(ctx, latest, all)
		}
		if err != nil {
			return err
		}
		s.seen.written(some, all)
	}
	return nil
}

// latestSeen are those computers for which the store has no later sighting. One that is
// the same was written by a try that failed afterwards.
func (s *Agents) latestSeen(ctx context.Context, ids []string, all map[string]time.Time) (latest []string, err error) {
	return viewedOf(ctx, s.core, kv.Rows{Keys: keysOf(ids, keyComputerSeen)}, func(tx kv.Tx) (latest []string, err error) {
		for _, id := range ids {
			written, _, err := get[time.Time](tx, keyComputerSeen(id))
			if err != nil {
				return nil, err
			}
			if !all[id].Before(written) {
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
	ids = slices.DeleteFunc(slices.Clone(ids), s.watchers.watches)
	if len(ids) == 0 {
		return nil
	}
	keys := keysOf(ids, keyComputer)
	values, err := viewedOf(ctx, s.core, kv.Rows{Keys: keys}, func(tx kv.Tx) ([][]byte, error) { return tx.GetAll(keys...) })
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
	return s.store.Update(ctx, func(tx kv.Tx) error { return deleteAll(tx, keysOf(gone, keyComputerSeen)...) })
}

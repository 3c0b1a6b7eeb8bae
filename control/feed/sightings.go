package feed

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"porchlight/control/kv"
	"porchlight/internal/broadcast"
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

// Sightings are those that are not written yet. They are safe for concurrent use.
type Sightings struct {
	mu   sync.Mutex
	at   map[string]time.Time // by computer; guarded by mu
	some chan struct{}        // there are some

	write func(ctx context.Context, ids []string, at map[string]time.Time) error
	log   *slog.Logger
}

// Note has a computer be seen at a time.
func (s *Sightings) Note(computerID string, at time.Time) {
	s.mu.Lock()
	if at.After(s.at[computerID]) {
		s.at[computerID] = at.UTC()
	}
	s.mu.Unlock()
	broadcast.Raise(s.some)
}

// Last is the later of a sighting that was written and one that is to be.
func (s *Sightings) Last(computerID string, written time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.at[computerID]; at.After(written) {
		return at
	}
	return written
}

// pending are those to be written.
func (s *Sightings) pending() map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.at)
}

// written forgets these sightings, but for those that were followed by another.
func (s *Sightings) written(ids []string, at map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.at[id].Equal(at[id]) {
			delete(s.at, id)
		}
	}
}

// Write has those there are written, so many computers at a time, and forgets those that
// were.
func (s *Sightings) Write(ctx context.Context) error {
	all := s.pending()
	for some := range slices.Chunk(slices.Collect(maps.Keys(all)), seenBatch) {
		if err := s.write(ctx, some, all); err != nil {
			return err
		}
		s.written(some, all)
	}
	return nil
}

// Run calls Write so often, and a last time when ctx ends, whose error it returns.
func (s *Sightings) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	var last time.Time
	for {
		select {
		case <-s.some:
		case <-ctx.Done():
			return s.writeLast(ctx)
		}
		timer.Reset(max(seenGather, seenEvery-time.Since(last)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return s.writeLast(ctx)
		}
		last = time.Now()
		if err := s.Write(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("noting when computers were seen failed; it is tried again", "err", err)
			broadcast.Raise(s.some)
		}
	}
}

// writeLast writes what is left, and returns the error of ctx.
func (s *Sightings) writeLast(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), seenAtEnd)
	defer cancel()
	if err := s.Write(last); err != nil {
		s.log.Warn("noting when computers were seen failed", "err", err)
	}
	return ctx.Err()
}

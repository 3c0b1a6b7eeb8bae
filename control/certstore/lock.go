package certstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"porchlight/control/kv"
)

const (
	lockPrefix = "acme-lock/"
	// A holder says every leaseBeat that it is still there. Who finds that it has said
	// nothing for leaseEnds takes over. Both are lengths of time by one's own clock, so
	// that nodes need not agree on what time it is.
	leaseBeat = 3 * time.Second
	leaseEnds = 15 * time.Second
	lookAgain = 500 * time.Millisecond
	// lookedOn is how far apart two looks at a lock may be that count as one watch. While
	// nobody can look, its holder may not be able to say anything either: that is no silence.
	lookedOn = leaseBeat
	// beatWithin bounds one beat, so that one that hangs does not keep the next from trying.
	beatWithin = 2 * leaseBeat
	// endWithin bounds giving locks back when a node ends.
	endWithin = 2 * time.Second
)

// errLost is why a node may not write any more under a lock it had.
var errLost = errors.New("another node has taken this one's lock over, so what it did is not stored")

// lockRow is a lock as the store has it; without one it is free.
type lockRow struct {
	Holder string `json:"holder"` // new for each time it is taken
	Beat   int64  `json:"beat"`   // rises while the holder is there
}

// lease is a lock that this process holds.
type lease struct {
	holder string
	stop   context.CancelFunc
	ended  chan struct{} // closed when it beats no longer
}

// sighting is another holder's lock as it was last found.
type sighting struct {
	row   lockRow
	since time.Time // it has been watched since then, and was so all the while
	last  time.Time // it was last found so
}

// Lock implements certmagic.Locker.
func (s *Storage) Lock(ctx context.Context, name string) error {
	for first := true; ; first = false {
		if got, err := s.TryLock(ctx, name); got || err != nil {
			return err
		}
		if first {
			s.log.Info("another node is at this work; waiting for it", "lock", name)
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TryLock implements certmagic.TryLocker.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	holder := rand.Text()
	var found lockRow // of another holder, who is taken to be there
	err := s.store.Update(ctx, func(tx kv.Tx) (err error) {
		found, err = readLock(tx, name)
		if err != nil || found.Holder != "" && !s.silent(name, found) {
			return err
		}
		found = lockRow{}
		return putLock(tx, name, lockRow{Holder: holder})
	})
	if err != nil {
		return false, fmt.Errorf("taking a lock in the store: %w", err)
	}
	if found.Holder != "" {
		return false, s.look(ctx)
	}
	s.hold(name, holder)
	return true, nil
}

// look notes all locks: who holds one that is waited for may have died with others,
// which are wanted next.
func (s *Storage) look(ctx context.Context) error {
	var locks map[string]lockRow
	err := s.store.ViewOf(ctx, kv.Rows{Prefixes: []string{lockPrefix}}, func(tx kv.Tx) error {
		locks = map[string]lockRow{}
		return kv.EachJSON(tx, lockPrefix, func(name string, found lockRow) error {
			locks[name] = found
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("looking at a lock in the store: %w", err)
	}
	for name, found := range locks {
		s.sight(name, found)
	}
	return nil
}

// silent says whether a holder has said nothing for as long as it may.
func (s *Storage) silent(name string, found lockRow) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[name]
	return seen.row == found && time.Since(seen.last) < lookedOn && time.Since(seen.since) >= leaseEnds
}

func (s *Storage) sight(name string, found lockRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, now := s.seen[name], time.Now()
	if seen.row != found || now.Sub(seen.last) >= lookedOn {
		seen = sighting{row: found, since: now}
	}
	seen.last = now
	s.seen[name] = seen
}

// hold keeps a lock that was taken until Unlock.
func (s *Storage) hold(name, holder string) {
	ctx, stop := context.WithCancel(context.Background())
	l := &lease{holder: holder, stop: stop, ended: make(chan struct{})}
	s.mu.Lock()
	delete(s.seen, name)
	s.held[name] = l
	s.mu.Unlock()
	go func() {
		defer close(l.ended)
		s.beat(ctx, name, holder)
	}()
}

// beat says that the holder is there, until it is not, or has lost the lock.
func (s *Storage) beat(ctx context.Context, name, holder string) {
	ticks := time.NewTicker(leaseBeat)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		err := s.beatOnce(ctx, name, holder)
		if errors.Is(err, kv.ErrClosed) {
			return
		}
		if errors.Is(err, errLost) {
			s.log.Warn("another node has taken over the work of this one, which did not reach the store in time", "lock", name)
			return
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("saying that this node holds a lock failed; it is tried again", "lock", name, "err", err)
		}
	}
}

// beatOnce goes before what others asked of the store: who waits for the lock would take
// a holder that stands in a long line for one that is gone.
func (s *Storage) beatOnce(ctx context.Context, name, holder string) error {
	ctx, cancel := context.WithTimeout(kv.First(ctx), beatWithin)
	defer cancel()
	return s.store.Update(ctx, func(tx kv.Tx) error {
		r, err := readLock(tx, name)
		if err != nil {
			return err
		}
		if r.Holder != holder {
			return errLost
		}
		r.Beat++
		return putLock(tx, name, r)
	})
}

// Unlock implements certmagic.Locker. A lock that somebody else has by now stays
// theirs. It waits in no line: all nodes wait for a lock that is not given back.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	l := s.held[name]
	delete(s.held, name)
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	l.stop()
	<-l.ended
	return s.store.Update(kv.First(ctx), func(tx kv.Tx) error {
		r, err := readLock(tx, name)
		if err != nil || r.Holder != l.holder {
			return err
		}
		return tx.Delete(lockPrefix + name)
	})
}

// Close gives back what locks this node still has. The store stays open.
func (s *Storage) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	s.mu.Lock()
	names := slices.Collect(maps.Keys(s.held))
	s.mu.Unlock()
	var errs []error
	for _, name := range names {
		errs = append(errs, s.Unlock(ctx, name))
	}
	return errors.Join(errs...)
}

// fence fails where another node has a lock that this one works under, in the
// transaction that is about to write.
func (s *Storage) fence(tx kv.Tx) error {
	s.mu.Lock()
	holders := map[string]string{}
	for name, l := range s.held {
		holders[name] = l.holder
	}
	s.mu.Unlock()
	for name, holder := range holders {
		r, err := readLock(tx, name)
		if err != nil {
			return err
		}
		if r.Holder != holder {
			return errLost
		}
	}
	return nil
}

func readLock(tx kv.Tx, name string) (r lockRow, err error) {
	r, _, err = kv.GetJSON[lockRow](tx, lockPrefix+name)
	return r, err
}

func putLock(tx kv.Tx, name string, r lockRow) error {
	return kv.PutJSON(tx, lockPrefix+name, r, 0)
}

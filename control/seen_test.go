package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

// seenStore counts the writes of when computers were seen, and can refuse them.
type seenStore struct {
	kv.Store
	mu     sync.Mutex
	writes int
	rows   int
	away   error
}

func (s *seenStore) PutAll(ctx context.Context, ttl time.Duration, rows ...kv.Item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return s.away
	}
	s.writes++
	s.rows += len(rows)
	return s.Store.PutAll(ctx, ttl, rows...)
}

func (s *seenStore) fail(err error) { s.mu.Lock(); defer s.mu.Unlock(); s.away = err }

// took are the writes and their rows since it was asked last.
func (s *seenStore) took() (writes, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	writes, rows = s.writes, s.rows
	s.writes, s.rows = 0, 0
	return writes, rows
}

// Weakness: every idle computer costs a commit a minute. Checked: however many are
// there and however often they ask, it is one a minute for all of them; what is not
// written yet is told all the same, survives a store that is away, and is written when
// the service ends.
func TestSeenIsWrittenTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const computers = 50
		store := &seenStore{}
		b := newBench(t, func(c *Config) { store.Store, c.Store, c.Now = c.Store, store, time.Now })
		var ids []string
		for n := range computers {
			ids = append(ids, ok[OwnedComputer](t)(b.computer(fmt.Sprintf("c%d", n))).ID)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Feed.Seen.Run(ctx) }()
		all := func() {
			for _, id := range ids {
				b.note(id, time.Now())
			}
			synctest.Wait()
		}
		wait := func(what string, d time.Duration, writes, rows int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if w, r := store.took(); w != writes || r != rows {
				t.Errorf("%s: %d rows in %d writes, want %d in %d", what, r, w, rows, writes)
			}
		}
		store.took()
		all()
		wait("the first time", time.Second, 1, computers)
		for range 2 {
			all()
			wait("once more within the minute", 25*time.Second, 0, 0)
		}
		all()
		wait("after a minute", 10*time.Second, 1, computers)
		wait("when nobody comes", 10*time.Minute, 0, 0)

		store.fail(kv.ErrUnavailable)
		all()
		at := time.Now()
		wait("while the store is away", 5*time.Minute, 0, 0)
		store.fail(nil)
		wait("when it is back", time.Minute, 1, computers)
		if seen := b.seenAt(ids[0]); !seen.Equal(at) {
			t.Errorf("seen at %v, want %v", seen, at)
		}

		time.Sleep(time.Second)
		all()
		if seen := b.seenAt(ids[1]); !seen.Equal(time.Now()) {
			t.Errorf("not written yet, it is told as %v", seen)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		wait("at the end", 0, 1, computers)
	})
}

// Weakness: a node that writes late puts back what another has written since. Checked:
// the later sighting stays, whichever node writes last.
func TestSeenNeverGoesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, other := b.Service, b.node()
	id := ok[OwnedComputer](t)(b.computer("study")).ID
	early := time.Now().UTC()
	for n, order := range [][]*Service{{one, other}, {other, one}} {
		early = early.Add(time.Hour)
		late := early.Add(50 * time.Second)
		one.Feed.Seen.Note(id, early)
		other.Feed.Seen.Note(id, late)
		for _, node := range order {
			programs.Must(t, node.Feed.Seen.Write(t.Context()))
		}
		if seen := b.seenAt(id); !seen.Equal(late) {
			t.Errorf("order %d: seen at %v, want %v", n, seen, late)
		}
		for _, node := range order {
			if at := node.Feed.Seen.Last(id, time.Time{}); !at.IsZero() {
				t.Errorf("order %d: it is to be written again", n)
			}
		}
	}
}

// Weakness: each minute a node read the rows of all computers that sleep, to find out which
// of them are gone. Checked: nothing is read for who is told here, and what was written for
// a computer that was removed is taken out when its agent is told no more.
func TestSeenOfWhoIsRemoved(t *testing.T) {
	t.Parallel()
	store := &statements{}
	b := newBench(t, func(c *Config) { store.Store, c.Store = c.Store, store })
	e := b.owner()
	w := b.watch(e.Computer.ID)
	written := func() bool {
		t.Helper()
		programs.Must(t, b.Feed.Seen.Write(t.Context()))
		return b.rows(keyComputerSeen(e.Computer.ID)) > 0
	}
	b.note(e.Computer.ID, b.clock.Now())
	store.took()
	if !written() {
		t.Error("it is not written")
	}
	if sent := store.took(); sent != 2 {
		t.Errorf("%d statements, want one to read and one to write", sent)
	}
	b.note(e.Computer.ID, b.clock.Now().Add(1))
	programs.Must(t, b.Computers.Remove(t.Context(), e.AccountID, "maya"))
	written() // before the agent is told, whose sync ends by that
	w.unwatch()
	b.note(e.Computer.ID, b.clock.Now().Add(2))
	if written() {
		t.Error("the row of a computer that is gone stays")
	}
}

// computer makes a computer of an account of its own.
func (b *bench) computer(name string) (OwnedComputer, error) {
	b.t.Helper()
	if _, err := b.Computers.Ensure(b.t.Context(), name+"@example.com", name); err != nil {
		return OwnedComputer{}, err
	}
	return b.Computers.ByName(b.t.Context(), name)
}

// seenAt is when its owner is told that a computer was seen.
func (b *bench) seenAt(id string) time.Time {
	b.t.Helper()
	all := ok[[]OwnedComputer](b.t)(b.Computers.List(b.t.Context()))
	for _, c := range all {
		if c.ID != id {
			continue
		}
		account := ok[Account](b.t)(b.Accounts.ByEmail(b.t.Context(), c.Owner))
		return ok[[]OwnComputer](b.t)(b.Computers.Own(b.t.Context(), account.ID))[0].Since
	}
	return time.Time{}
}

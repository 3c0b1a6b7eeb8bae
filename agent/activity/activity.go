// Package activity is the record of what happened, on this computer only: visits,
// decisions and trouble, a line each, page by page, with what of it can still be taken
// back.
//
// Lines come in from the rooms where something happens. A request never waits for the
// disk: lines gather in memory, bounded, and Run writes them in batches. A decision is
// written at once. The package decides nothing: whether an Undo would restore exactly
// what was before is read from the rooms that decide, and is a call of the same room.
package activity

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/broadcast"
)

const (
	maxUnwritten = 1024 // lines waiting for the next flush, of visits and of all else
	writeEvery   = 2 * time.Second
)

// Config of New. Store is required.
type Config struct {
	Store *store.Store
	// Changes is raised when there are other lines than before; nil when nobody follows.
	Changes *broadcast.Signal
	Now     func() time.Time // time.Now when nil
	// OnFirstVisit is called when a member has opened an app for the first time; nil
	// when nobody wants to know.
	OnFirstVisit func(store.Visited)
	// Owner is the owner's address, "" while that is not known; nil where nobody is one.
	Owner func() string
	Log   *slog.Logger // discarded when nil
}

// Log is safe for concurrent use. Run must be running for visits to be written.
type Log struct {
	cfg     Config
	clients atomic.Pointer[map[string]string] // never nil; see NameClients

	mu          sync.Mutex
	visits      map[visitKey]time.Time // last request; guarded by mu
	unwritten   []agentapi.Activity    // oldest first; guarded by mu
	began       []store.Visited        // members' visits since the last flush; guarded by mu
	calls       map[string]store.Calls // by grant; guarded by mu
	callsUnkept bool                   // calls are others than the store has; guarded by mu
	opened      map[string]int         // see Visits; never changed, but replaced; guarded by mu
	ofVisits    int                    // how many of unwritten are; guarded by mu
	dropped     int                    // lines there was no room for; guarded by mu

	// writing is locked while lines go to the store: reading and clearing wait for
	// all that happened before, and no line is stored after it was cleared.
	writing sync.Mutex
	wake    broadcast.Signal // unwritten has lines

	version atomic.Uint64 // see Version
}

// New makes it of what the store has.
func New(c Config) *Log {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	l := &Log{cfg: c, visits: map[visitKey]time.Time{}, calls: map[string]store.Calls{}}
	if kept, err := c.Store.Calls(); err != nil {
		c.Log.Warn("what is kept of the calls of connected apps cannot be read", "err", err)
	} else {
		maps.Copy(l.calls, kept)
	}
	l.clients.Store(&map[string]string{})
	return l
}

// Run writes what gathers, and removes what is too old. It blocks until ctx ends, and
// has then written all that happened before.
func (l *Log) Run(ctx context.Context) error {
	const (
		againEvery = time.Minute
		sweepEvery = time.Hour
	)
	gathered, cancel := l.wake.Subscribe()
	defer cancel()
	write := time.NewTimer(time.Hour) // armed while lines gather
	write.Stop()
	defer write.Stop()
	again := time.NewTicker(againEvery)
	defer again.Stop()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	happened := gathered // nil while write is armed
	l.sweep()
	l.flush() // what happened before Run listened
	for {
		select {
		case <-happened:
			happened = nil
			write.Reset(writeEvery)
		case <-write.C:
			l.flush()
			happened = gathered
		case <-again.C:
			l.flush() // what the disk did not take before
			l.keepCalls()
		case <-sweep.C:
			l.sweep()
		case <-ctx.Done():
			l.flush()
			l.keepCalls()
			return nil
		}
	}
}

// Add keeps a line; a zero At is now. A decision is on the disk when it
// returns, so that who is told of one finds it after a crash too. Visits and what
// strangers can cause never wait for the disk, and are dropped when too many wait
// already, which is logged with their count. A nil Log keeps nothing.
func (l *Log) Add(line agentapi.Activity) {
	if l == nil {
		return
	}
	if line.At.IsZero() {
		line.At = l.cfg.Now()
	}
	line.At, line.You = line.At.UTC(), l.owners(line.Email)
	l.gather(line)
	if agentapi.GroupOf(line.Kind) == agentapi.GroupDecisions && !store.Counted(line.Kind) {
		l.flush()
		return
	}
	l.wake.Raise()
}

// owners says whether an address is the owner's, who is "you" in every line.
func (l *Log) owners(email string) bool {
	return email != "" && l.cfg.Owner != nil && email == l.cfg.Owner()
}

// gather has a line wait for the next flush.
func (l *Log) gather(line agentapi.Activity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if store.Counted(line.Kind) {
		for i := range l.unwritten {
			if store.FoldActivity(&l.unwritten[i], line) {
				return
			}
		}
	}
	visit := agentapi.GroupOf(line.Kind) == agentapi.GroupVisits
	switch {
	case visit && l.ofVisits >= maxUnwritten, !visit && len(l.unwritten)-l.ofVisits >= maxUnwritten:
		l.dropped++
		return
	case visit:
		l.ofVisits++
	}
	l.unwritten = append(l.unwritten, line)
}

// write brings the waiting lines to the store. writing is held.
func (l *Log) write() {
	l.tellFirstVisits()
	l.mu.Lock()
	lines, dropped := l.unwritten, l.dropped
	l.unwritten, l.ofVisits, l.dropped = nil, 0, 0
	l.mu.Unlock()
	if dropped > 0 {
		l.cfg.Log.Warn("more happened at once than could be written down", "lines_dropped", dropped)
	}
	if len(lines) == 0 {
		return
	}
	for i, line := range lines { // a client may open something before its grant was read
		if line.Kind == agentapi.ActivityClient {
			lines[i].By = cmp.Or((*l.clients.Load())[line.By], line.By)
		}
	}
	if err := l.cfg.Store.AddActivity(lines...); err != nil {
		l.cfg.Log.Error("what happened could not be written down", "lines", len(lines), "err", err)
		l.takeBack(lines)
		return
	}
	l.version.Add(1)
	l.cfg.Changes.Raise()
}

// takeBack has what is no visit wait for another try.
func (l *Log) takeBack(lines []agentapi.Activity) {
	lines = slices.DeleteFunc(lines, func(line agentapi.Activity) bool { return agentapi.GroupOf(line.Kind) == agentapi.GroupVisits })
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(lines)+len(l.unwritten)-l.ofVisits > maxUnwritten {
		l.dropped += len(lines)
		return
	}
	l.unwritten = append(lines, l.unwritten...)
}

func (l *Log) flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.write()
}

// sweep drops what is too old, of the store and of memory, and counts what is left.
func (l *Log) sweep() {
	now := l.cfg.Now()
	l.mu.Lock()
	l.forget(now)
	l.mu.Unlock()
	if err := l.cfg.Store.SweepActivity(now); err != nil {
		l.cfg.Log.Error("old activity could not be removed", "err", err)
	}
	l.countVisits()
}

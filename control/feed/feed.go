// Package feed tells agents what concerns them, and knows whether this node can: who is told
// of which computer, and whether the store is read. It remembers, in memory, how often agents
// ask, whose a credential was, and when a computer was last here. It reads no row and decides
// nothing of who may what; package control does, above it.
package feed

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// An agent is told here, and a change in this process wakes those of the computers it
// touched. A node is in step while it can read the store: only then does it hear what other
// nodes change, and may say to an agent that nothing did. It looks for all agents together.

const (
	// LookEvery is how often Look is to be called, and how late another node's new signing
	// key may be noticed.
	LookEvery = 10 * time.Second
	// dueAtOnce bounds the credentials of one look; what is left is for the next.
	dueAtOnce = kv.MaxRows - 3
	// busyLooks in a row may find the store too busy to be read.
	busyLooks = 3
	// watchesPerComputer bounds who is told of one computer. An agent that lost its
	// connection leaves one behind until its time is over, so more than one is normal;
	// beyond the bound the oldest gives way.
	watchesPerComputer = 4
)

// Config of a Feed: what is read for it, because it knows no rows. All of it is required.
type Config struct {
	// First is what the agent with this credential is told first, asked for from client. It
	// calls found, once at most, before it reads what may change, so that nothing falls
	// between. Its errors are told to the agent.
	First func(ctx context.Context, credential string, client netip.Addr, found func(Credential)) (controlapi.Snapshot, error)
	// Again is what an agent is told whose credential First found.
	Again func(context.Context, Credential) (controlapi.Snapshot, error)
	// Ended are the computers of those credentials that are not good any more. It reads the
	// store for none, too: its error says that this node cannot.
	Ended func(context.Context, []Credential) (computers []string, err error)
	// WriteSeen keeps when computers were last here, those with these ids of all in at.
	WriteSeen func(ctx context.Context, ids []string, at map[string]time.Time) error
	Now       func() time.Time
	Log       *slog.Logger
}

// Credential is the hash of one, and whose it was found to be.
type Credential struct{ Hash, Computer string }

// Feed tells agents, each in a goroutine that is there only while it has something to look
// at, because most computers sleep. It is safe for concurrent use.
type Feed struct {
	cfg Config
	// Seen is when the computers whose agents are told were last here.
	Seen *Sightings

	life context.Context // over once this node is to end
	end  context.CancelCauseFunc
	busy int // looks in a row that found the store too busy; of the goroutine that looks

	mu         sync.Mutex // protects what follows
	byComputer map[string][]*watch
	step       context.Context // ends when it is found that the store cannot be read
	lose       context.CancelCauseFunc
}

// watch is one that is woken by each change of a computer.
type watch struct {
	Credential
	wake    func()
	end     func(why error)
	checked time.Time // when the credential was good; guarded by Feed.mu until it is set, and then of the goroutine that looks
}

// New makes a Feed that is in step.
func New(cfg Config) *Feed {
	f := &Feed{cfg: cfg, byComputer: map[string][]*watch{}}
	f.Seen = &Sightings{at: map[string]time.Time{}, some: make(chan struct{}, 1), write: cfg.WriteSeen, log: cfg.Log}
	f.life, f.end = context.WithCancelCause(context.Background())
	f.step, f.lose = context.WithCancelCause(f.life)
	return f
}

// Watch calls wake with each change of a computer, before Wake returns, until it is stopped.
// Changes before that wake nobody, so what they change is read afterwards.
func (f *Feed) Watch(computerID string, wake func()) (stop func()) {
	w := &watch{Credential: Credential{Computer: computerID}, wake: wake, end: func(error) {}}
	f.add(w)
	return func() { f.remove(w) }
}

func (f *Feed) add(w *watch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.byComputer[w.Computer] // oldest first
	if len(list) >= watchesPerComputer {
		list[0].end(notHere())
		list[0].wake()
		list = slices.Delete(list, 0, 1)
	}
	f.byComputer[w.Computer] = append(list, w)
}

func (f *Feed) remove(w *watch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := slices.DeleteFunc(f.byComputer[w.Computer], func(o *watch) bool { return o == w })
	if len(list) == 0 {
		delete(f.byComputer, w.Computer)
		return
	}
	f.byComputer[w.Computer] = list
}

// Wake has those look who are told of these computers.
func (f *Feed) Wake(computerIDs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range computerIDs {
		for _, w := range f.byComputer[id] {
			w.wake()
		}
	}
}

// WakeAll has everybody look.
func (f *Feed) WakeAll() { f.Wake(f.Watched()...) }

// Watched are the computers somebody is told of, in order.
func (f *Feed) Watched() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.byComputer))
}

// Watches says whether somebody is told of a computer here.
func (f *Feed) Watches(computerID string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byComputer[computerID]) > 0
}

// Drain has all that is told end, now and from now on, so that whoever serves it can end.
// It may be called more than once.
func (f *Feed) Drain() {
	f.end(errEnding)
	f.WakeAll()
}

// Look notes that the computers that are told of are here, and finds out, together, whether
// the credentials whose turn it is are good. It says whether this node can speak for the
// control plane: who cannot read the store does not hear what others change. One read that
// takes too long says nothing of that, nor that the store is busy for a few looks. It is
// called by one goroutine.
func (f *Feed) Look(ctx context.Context) {
	due := f.due(f.cfg.Now())
	err := f.check(ctx, due)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = f.check(ctx, due) // by another connection
	}
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, kv.ErrBusy) {
		f.busy++
	} else {
		f.busy = 0
	}
	if f.busy == 0 || f.busy > busyLooks {
		f.setBehind(err != nil)
	}
	if err != nil {
		f.cfg.Log.Warn("the store cannot be read for the computers here", "err", err)
	}
}

// due notes all that are told, and gives those whose credential is to be looked up.
func (f *Feed) due(now time.Time) (due []*watch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, list := range f.byComputer {
		for _, w := range list {
			if w.checked.IsZero() { // not told yet
				continue
			}
			f.Seen.Note(w.Computer, now)
			if now.Sub(w.checked) >= checkAgainAfter && len(due) < dueAtOnce {
				due = append(due, w)
			}
		}
	}
	return due
}

// check has those look again whose credential is not good any more.
func (f *Feed) check(ctx context.Context, due []*watch) error {
	ctx, cancel := context.WithTimeout(kv.First(ctx), readFor)
	defer cancel()
	credentials := make([]Credential, len(due))
	for i, w := range due {
		credentials[i] = w.Credential
	}
	ended, err := f.cfg.Ended(ctx, credentials)
	if err != nil {
		return err
	}
	for _, w := range due {
		w.checked = f.cfg.Now()
	}
	f.Wake(ended...)
	return nil
}

// setBehind notes whether the store can be read. While it cannot, nobody is told.
func (f *Feed) setBehind(is bool) {
	f.mu.Lock()
	switch {
	case is:
		f.lose(notHere())
	case f.step.Err() != nil:
		f.step, f.lose = context.WithCancelCause(f.life)
	}
	f.mu.Unlock()
	if is {
		f.WakeAll()
	}
}

package control

import (
	"context"
	"net/netip"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// An agent whose control connection carries the sync is told each snapshot that is
// another one than it has, for as long as the connection stands: it asks once.

const (
	// checkAgainAfter is how often the credential of such an agent is looked up where
	// nothing of its computer changed.
	checkAgainAfter = 10 * time.Minute
	// probeEvery is how often the store is read to see that it is there.
	probeEvery = 10 * time.Second
)

// Tell tells the agent with this credential, which has the snapshot of version has,
// each other one, until ctx ends or it is over, and returns why: a refusal where the
// credential is not good (any more) or this node cannot know of changes. What it tells
// first answers at once, with Unchanged set where the agent has it already.
func (s *Agents) Tell(ctx context.Context, credential string, client netip.Addr, has string, tell func(controlapi.Snapshot) error) error {
	if behind(s.watchers.outOfStep()) {
		return notHere()
	}
	watch, snapshot, err := s.Sync(ctx, credential, client)
	if err != nil {
		return err
	}
	defer watch.Stop()
	seen := time.NewTicker(seenEvery / 2) // awayAfter is that and seenEvery
	defer seen.Stop()
	for first := true; ; first = false {
		switch {
		case snapshot.Version != has:
			err = tell(snapshot)
		case first:
			err = tell(controlapi.Snapshot{Version: has, Unchanged: true})
		}
		if err != nil {
			return err
		}
		has = snapshot.Version
		if err := s.stay(ctx, watch, seen.C); err != nil {
			return err
		}
		if snapshot, err = s.SyncAgain(ctx, credential); err != nil {
			return err
		}
	}
}

// stay returns nil when it is time to look again, and notes meanwhile that the
// computer is here.
func (s *Agents) stay(ctx context.Context, watch *Watch, seen <-chan time.Time) error {
	again := time.NewTimer(checkAgainAfter)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-watch.Changed:
			return nil
		case <-again.C:
			return nil
		case <-seen:
			s.seen.note(watch.computer, s.now())
		case <-watch.Replaced:
			return notHere()
		case <-s.closing:
			return notHere()
		case <-s.watchers.outOfStep():
			return notHere()
		}
	}
}

// runProbe sees whether this node can speak for the control plane: who cannot read the
// store does not hear what others change.
func (s *Agents) runProbe(ctx context.Context) error {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		err := s.store.View(ctx, func(tx kv.Tx) error { _, err := tx.Get(keyLine); return err })
		if err != nil && ctx.Err() == nil {
			s.log.Warn("the store cannot be read", "error", err)
		}
		s.watchers.setBehind(err != nil)
	}
}

func notHere() error {
	return refuse(controlapi.CodeUnavailable, "This server cannot say just now whether anything changed. Try again in a moment.")
}

// outOfStep is closed while the store cannot be read.
func (ws *watchers) outOfStep() <-chan struct{} {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.behind == nil {
		ws.behind = make(chan struct{})
	}
	return ws.behind
}

func behind(outOfStep <-chan struct{}) bool {
	select {
	case <-outOfStep:
		return true
	default:
		return false
	}
}

func (ws *watchers) setBehind(is bool) {
	now := ws.outOfStep()
	if behind(now) == is {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if is {
		close(ws.behind)
	} else {
		ws.behind = make(chan struct{})
	}
}

// loadLine reads the line of changes, making one where there is none.
func (s *core) loadLine(ctx context.Context) (string, error) {
	made := newID()
	return updated(ctx, s, func(tx *txn) (string, error) {
		line, found, err := get[string](tx, keyLine)
		if err != nil || found {
			return line, err
		}
		return made, put(tx, keyLine, made, 0)
	})
}

// EndLine has the changes in a store counted in another line from the next start on,
// because it was filled from a backup: agents have seen higher numbers, and are to
// believe the lower ones.
func EndLine(ctx context.Context, store kv.Store) error {
	return store.Update(ctx, func(tx kv.Tx) error { return tx.Delete(keyLine) })
}

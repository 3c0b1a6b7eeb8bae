package control

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// An agent whose control connection carries the sync is told each snapshot that is
// another one than it has, for as long as the connection stands: it asks once.

const (
	// checkAgainAfter is how often the credential of such an agent is looked up where
	// nothing of its computer changed, and what it is told read where some of that passes
	// by itself.
	checkAgainAfter = 10 * time.Minute
	// lookEvery is how often the store is read for all agents of this node.
	lookEvery = 10 * time.Second
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
	defer func() { s.seen.note(watch.computer, s.now()) }()
	s.watchers.tells(watch, hashOf(purposeCredential, credential), s.now().Add(-rand.N(checkAgainAfter)))
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
		if err := s.stay(ctx, watch, passes(snapshot)); err != nil {
			return err
		}
		if snapshot, err = s.SyncAgain(ctx, credential); err != nil {
			return err
		}
	}
}

// passes says whether some of a snapshot ends by itself, with no change of the computer.
func passes(s controlapi.Snapshot) bool {
	return len(s.Knocks)+len(s.RevokedGrants)+len(s.ClientOrigins)+len(s.Undelivered) > 0
}

// stay returns nil when it is time to look again.
func (s *Agents) stay(ctx context.Context, watch *Watch, passes bool) error {
	var again <-chan time.Time // sleeping computers cost no timer each
	if passes {
		timer := time.NewTimer(checkAgainAfter)
		defer timer.Stop()
		again = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-watch.Changed:
		return nil
	case <-again:
		return nil
	case <-watch.Replaced:
	case <-s.closing:
	case <-s.watchers.outOfStep():
	}
	return notHere()
}

// runLook looks for all agents that are told by this node. A store of its own tells the
// node of all that is written, and cannot be away.
func (s *Agents) runLook(ctx context.Context) error {
	every := seenEvery
	if s.cfg.SharedStore {
		every = lookEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			s.look(ctx)
		}
	}
}

// look notes that their computers are here, and reads, together, whether the credentials
// whose turn it is are good. It says whether this node can speak for the control plane:
// who cannot read the store does not hear what others change. That it is busy, and one
// read that takes too long, say nothing of that.
func (s *Agents) look(ctx context.Context) {
	now := s.now()
	var due []*Watch
	for _, w := range s.watchers.told() {
		s.seen.note(w.computer, now)
		if now.Sub(w.checked) >= checkAgainAfter {
			due = append(due, w)
		}
	}
	err := s.checkCredentials(ctx, due)
	switch slow := errors.Is(err, context.DeadlineExceeded); {
	case ctx.Err() != nil || errors.Is(err, kv.ErrBusy):
	case slow && !s.wasSlow:
		s.wasSlow = true
	default:
		s.wasSlow = slow
		s.watchers.setBehind(err != nil)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the store cannot be read for the computers here", "error", err)
	}
}

// checkCredentials has those look again whose credential is not good any more. With
// nobody to look up it reads the store all the same.
func (s *Agents) checkCredentials(ctx context.Context, due []*Watch) error {
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	for {
		some := due[:min(len(due), kv.MaxKeys-1)]
		keys := make([]string, 1, 1+len(some))
		keys[0] = keyLine
		for _, w := range some {
			keys = append(keys, keyCredential(w.hash))
		}
		good, err := viewedOf(ctx, s.core, kv.Rows{Keys: keys}, func(tx kv.Tx) (good []bool, err error) {
			if _, err := tx.Get(keyLine); err != nil {
				return nil, err
			}
			for _, w := range some {
				id, _, err := get[string](tx, keyCredential(w.hash))
				if err != nil {
					return nil, err
				}
				good = append(good, id == w.computer)
			}
			return good, nil
		})
		if err != nil {
			return err
		}
		for i, w := range some {
			w.checked = s.now()
			if !good[i] {
				s.watchers.wake(w.computer)
			}
		}
		if due = due[len(some):]; len(due) == 0 {
			return nil
		}
	}
}

func notHere() error {
	return refuse(controlapi.CodeUnavailable, "This server cannot say just now whether anything changed. Try again in a moment.")
}

// tells notes that an agent with this credential is told by a watch, and when that was
// good.
func (ws *watchers) tells(w *Watch, hash string, checked time.Time) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.hash, w.checked = hash, checked
}

// told are the watches by which agents are told.
func (ws *watchers) told() (all []*Watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, list := range ws.byComputer {
		for _, w := range list {
			if w.hash != "" {
				all = append(all, w)
			}
		}
	}
	return all
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

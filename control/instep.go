package control

import (
	"context"
	"errors"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// A node is in step while it can read the store: only then does it hear what other nodes
// change, and may say to an agent that nothing did. It looks for all agents together.

const (
	// lookEvery is how often the store is read for all agents of this node, and how late
	// another node's new signing key may be noticed.
	lookEvery = 10 * time.Second
	// dueAtOnce bounds the credentials of one look; what is left is for the next.
	dueAtOnce = kv.MaxRows - 3
	// busyLooks in a row may find the store too busy to be read.
	busyLooks = 3
)

// look notes that their computers are here, and reads, together, whether the credentials
// whose turn it is are good. It says whether this node can speak for the control plane:
// who cannot read the store does not hear what others change. One read that takes too
// long says nothing of that, nor that the store is busy for a few looks.
func (s *Agents) look(ctx context.Context) {
	now := s.now()
	var due []*telling
	for _, w := range s.watchers.told() {
		s.seen.Note(w.computer, now)
		if now.Sub(w.checked) >= checkAgainAfter {
			due = append(due, w)
		}
	}
	due = due[:min(len(due), dueAtOnce)]
	err := s.checkCredentials(ctx, due)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = s.checkCredentials(ctx, due) // by another connection
	}
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, kv.ErrBusy) {
		s.busy++
	} else {
		s.busy = 0
	}
	if s.busy == 0 || s.busy > busyLooks {
		s.watchers.setBehind(err != nil)
	}
	if err != nil {
		s.log.Warn("the store cannot be read for the computers here", "err", err)
	}
}

// checkCredentials has those look again whose credential is not good any more. With
// nobody to look up it reads the store all the same, and what others may have changed for
// all: the line, the keys, and the last change that was told to nobody.
func (s *Agents) checkCredentials(ctx context.Context, due []*telling) error {
	ctx, cancel := context.WithTimeout(kv.First(ctx), readFor)
	defer cancel()
	keys := []string{keyLine, keyKeys, keyUntold}
	for _, w := range due {
		keys = append(keys, keyCredential(w.hash))
	}
	var line, last string
	var stored storedKeys
	good, err := viewedOf(ctx, s.core, kv.Rows{Keys: keys}, func(tx kv.Tx) (good []bool, err error) {
		if line, _, err = get[string](tx, keyLine); err != nil {
			return nil, err
		}
		if stored, _, err = get[storedKeys](tx, keyKeys); err != nil {
			return nil, err
		}
		if last, _, err = get[string](tx, keyUntold); err != nil {
			return nil, err
		}
		for _, w := range due {
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
	if line != "" && line != *s.line.Load() {
		s.line.Store(&line)
		s.log.Info("changes are counted in another line from now on")
	}
	s.keys.readAgain(stored)
	if last != s.lastUntold {
		s.lastUntold = last
		s.untold.Store(true)
	}
	for i, w := range due {
		w.checked = s.now()
		if !good[i] {
			s.watchers.wake(w.computer)
		}
	}
	return nil
}

// inStep has read done within a time, and only while this node is in step: a read that a
// network swallowed ends by nothing else, and meanwhile the agent would take what it has
// for the newest.
func (s *Agents) inStep(ctx context.Context, within time.Duration, read func(context.Context) error) error {
	reading, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	defer context.AfterFunc(s.watchers.inStep(), cancel)()
	err := read(reading)
	if err != nil && reading.Err() != nil && ctx.Err() == nil {
		return notHere()
	}
	return err
}

func notHere() error {
	return refuse(controlapi.CodeUnavailable, "This server cannot say just now whether anything changed. Try again in a moment.")
}

// tells notes the credential with which an agent is told, and when that was good.
func (ws *watchers) tells(t *telling, hash string, checked time.Time) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	t.hash, t.checked = hash, checked
}

// told are those that have been told something.
func (ws *watchers) told() (all []*telling) {
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

// inStep ends when it is found that the store cannot be read.
func (ws *watchers) inStep() context.Context {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.step == nil {
		ws.step, ws.lose = context.WithCancel(context.Background())
	}
	return ws.step
}

// outOfStep is closed while the store cannot be read.
func (ws *watchers) outOfStep() <-chan struct{} { return ws.inStep().Done() }

func (ws *watchers) setBehind(is bool) {
	if (ws.inStep().Err() != nil) == is {
		return
	}
	ws.mu.Lock()
	if is {
		ws.lose()
	} else {
		ws.step, ws.lose = context.WithCancel(context.Background())
	}
	ws.mu.Unlock()
	if is {
		ws.endTold()
	}
}

// endTold ends what agents are told by this node.
func (ws *watchers) endTold() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, list := range ws.byComputer {
		for _, t := range list {
			t.end(notHere())
		}
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

// BeginLine has the changes counted in another line from now on: agents then believe what
// is in the store though they were told newer. The other nodes follow at their next look.
func (s *Computers) BeginLine(ctx context.Context) error {
	line := newID()
	err := s.update(ctx, func(tx *txn) error { return put(tx, keyLine, line, 0) })
	if err == nil {
		s.line.Store(&line)
	}
	return err
}

// EndLine has the changes in a store counted in another line from the next start on,
// because it was filled from a backup: agents have seen higher numbers, and are to
// believe the lower ones.
func EndLine(ctx context.Context, store kv.Store) error {
	return store.Update(ctx, func(tx kv.Tx) error { return tx.Delete(keyLine) })
}

package control

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
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
	// lookEvery is how often the store is read for all agents of this node, and how late
	// another node's new signing key may be noticed.
	lookEvery = 10 * time.Second
	// dueAtOnce bounds the credentials of one look; what is left is for the next.
	dueAtOnce = kv.MaxRows - 2
	// readFor is how long such a read may take, and that of a change; firstFor is the
	// same for what an agent is told first, when many come at once.
	readFor  = 3 * time.Second
	firstFor = 10 * time.Second
	// busyLooks in a row may find the store too busy to be read.
	busyLooks = 3
	// elsewhereFor bounds when to ask a node again that is about to end.
	elsewhereFor = 5 * time.Second
)

// Tell tells the agent with this credential, which has the snapshot of version has,
// each other one, until it is stopped, or until it is over, which over is told: with a
// refusal where the credential is not good (any more) or this node cannot know of
// changes. What it tells first answers at once, with Unchanged set where the agent has
// it already. tell and over are called by one goroutine at a time, and there is none
// while nothing changes, because most computers sleep. When stop has returned neither is
// called any more; it is not for them to call.
func (s *Agents) Tell(credential string, client netip.Addr, has string, tell func(controlapi.Snapshot) error, over func(error)) (stop func()) {
	t := &telling{agents: s, credential: credential, client: client, has: has, tell: tell, over: over}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.wake()
	return t.stop
}

// telling is one agent that is told.
type telling struct {
	agents     *Agents
	credential string
	client     netip.Addr
	tell       func(controlapi.Snapshot) error
	over       func(error)
	ctx        context.Context // ends with why it is over
	cancel     context.CancelCauseFunc

	// Of who looks.
	has   string
	watch *Watch      // nil before the credential was found to be good
	clock *time.Timer // wakes it; nil until that is needed

	looks   sync.WaitGroup
	mu      sync.Mutex // protects what follows
	looking bool       // somebody does, or nobody does any more
	again   bool       // there is something to look at since
}

// errStopped ends what is told because it was stopped.
var errStopped = errors.New("control: who was told has gone")

// wake has somebody look.
func (t *telling) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.again = true
	if !t.looking {
		t.looking = true
		t.looks.Go(t.look)
	}
}

// end has it be over. The first reason counts.
func (t *telling) end(why error) {
	t.cancel(why)
	t.wake()
}

func (t *telling) stop() {
	t.end(errStopped)
	t.looks.Wait()
}

// look tells what there is to tell. When it is over nobody looks again.
func (t *telling) look() {
	for t.more() {
		err := t.next()
		if why := context.Cause(t.ctx); why != nil {
			err = why
		}
		if err == nil {
			continue
		}
		t.cancel(err)
		if t.clock != nil {
			t.clock.Stop()
		}
		if t.watch != nil {
			t.watch.Stop()
			t.agents.seen.note(t.watch.computer, t.agents.now())
		}
		if err != errStopped {
			t.over(err)
		}
		return
	}
}

// more says whether there is something to look at.
func (t *telling) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looking, t.again = t.again, false
	return t.looking
}

// next reads the snapshot and tells it.
func (t *telling) next() error {
	s := t.agents
	select {
	case <-s.watchers.outOfStep():
		return notHere()
	case <-s.closing:
		return elsewhere()
	default:
	}
	first, within := t.watch == nil, readFor
	if first {
		within = firstFor
	}
	var snapshot controlapi.Snapshot
	err := s.inStep(t.ctx, within, func(ctx context.Context) (err error) {
		if first {
			t.watch, snapshot, err = s.sync(ctx, t.credential, t.client, t)
		} else {
			snapshot, err = s.SyncAgain(ctx, t.credential, t.watch)
		}
		return err
	})
	if err != nil {
		return err
	}
	if first {
		s.watchers.tells(t.watch, hashOf(purposeCredential, t.credential), s.now().Add(-rand.N(checkAgainAfter)))
	}
	switch {
	case snapshot.Version != t.has:
		err = t.tell(snapshot)
	case first:
		err = t.tell(controlapi.Snapshot{Version: t.has, Unchanged: true})
	}
	if err != nil {
		return err
	}
	t.has = snapshot.Version
	t.setClock(passes(snapshot))
	// Whoever ends what all are told may not have seen this one.
	select {
	case <-s.closing:
	case <-s.watchers.outOfStep():
	default:
		return nil
	}
	return notHere()
}

// setClock has it look again in a while where some of what was told ends by itself.
// Others cost no timer each.
func (t *telling) setClock(is bool) {
	switch {
	case is && t.clock == nil:
		t.clock = time.AfterFunc(checkAgainAfter, t.wake)
	case is:
		t.clock.Reset(checkAgainAfter)
	case t.clock != nil:
		t.clock.Stop()
	}
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

// passes says whether some of a snapshot ends by itself, with no change of the computer.
func passes(s controlapi.Snapshot) bool {
	return len(s.Knocks)+len(s.RevokedGrants)+len(s.ClientOrigins)+len(s.Undelivered) > 0
}

// look notes that their computers are here, and reads, together, whether the credentials
// whose turn it is are good. It says whether this node can speak for the control plane:
// who cannot read the store does not hear what others change. One read that takes too
// long says nothing of that, nor that the store is busy for a few looks.
func (s *Agents) look(ctx context.Context) {
	now := s.now()
	var due []*Watch
	for _, w := range s.watchers.told() {
		s.seen.note(w.computer, now)
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
// all: the line and the keys.
func (s *Agents) checkCredentials(ctx context.Context, due []*Watch) error {
	ctx, cancel := context.WithTimeout(kv.First(ctx), readFor)
	defer cancel()
	keys := []string{keyLine, keyKeys}
	for _, w := range due {
		keys = append(keys, keyCredential(w.hash))
	}
	var line string
	var stored storedKeys
	good, err := viewedOf(ctx, s.core, kv.Rows{Keys: keys}, func(tx kv.Tx) (good []bool, err error) {
		if line, _, err = get[string](tx, keyLine); err != nil {
			return nil, err
		}
		if stored, _, err = get[storedKeys](tx, keyKeys); err != nil {
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
	for i, w := range due {
		w.checked = s.now()
		if !good[i] {
			s.watchers.wake(w.computer)
		}
	}
	return nil
}

func notHere() error {
	return refuse(controlapi.CodeUnavailable, "This server cannot say just now whether anything changed. Try again in a moment.")
}

// elsewhere is for who asks a node that is about to end.
func elsewhere() error {
	return &controlapi.Error{
		Code: controlapi.CodeUnavailable, Message: "This server is about to end. Another one answers.",
		RetryAfter: time.Second + rand.N(elsewhereFor-time.Second),
	}
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
		for _, w := range list {
			if w.telling != nil {
				w.telling.end(notHere())
			}
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

package control

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"porchlight/control/controlapi"
)

// An agent whose control connection carries the sync is told each snapshot that is
// another one than it has, for as long as the connection stands: it asks once.

const (
	// checkAgainAfter is how often the credential of such an agent is looked up where
	// nothing of its computer changed, and what it is told read where some of that passes
	// by itself.
	checkAgainAfter = 10 * time.Minute
	// readFor is how long such a read may take, and that of a change; firstFor is the
	// same for what an agent is told first, when many come at once.
	readFor  = 3 * time.Second
	firstFor = 10 * time.Second
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

	// Of who looks.
	has      string
	computer string      // empty before it is found whose the credential is
	clock    *time.Timer // wakes it; nil until that is needed

	hash    string    // of the credential; guarded by watchers.mu until told
	checked time.Time // when that was good; the looking goroutine owns it after that

	looks   sync.WaitGroup
	mu      sync.Mutex // protects what follows
	looking bool       // somebody does, or nobody does any more
	again   bool       // there is something to look at since
	why     error      // it is over; nil until then
	leave   func()     // ends the look under way; nil for none
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
	t.finish(why)
	t.wake()
}

func (t *telling) finish(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == nil {
		t.why = why
	}
	if t.leave != nil {
		t.leave()
	}
}

// begin is the context of a look, which end ends. There is none while nobody looks.
func (t *telling) begin() (ctx context.Context, done func()) {
	ctx, done = context.WithCancel(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leave = done; t.why != nil {
		done()
	}
	return ctx, done
}

func (t *telling) stop() {
	t.end(errStopped)
	t.looks.Wait()
}

// look tells what there is to tell. When it is over nobody looks again.
func (t *telling) look() {
	for t.more() {
		err := t.once()
		if err == nil {
			continue
		}
		if t.clock != nil {
			t.clock.Stop()
		}
		if t.computer != "" {
			t.agents.watchers.remove(t)
			t.agents.seen.Note(t.computer, t.agents.now())
		}
		if err != errStopped {
			t.over(err)
		}
		return
	}
}

// once looks once, and says why it is over.
func (t *telling) once() error {
	ctx, done := t.begin()
	defer done()
	if err := t.next(ctx); err != nil {
		t.finish(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave = nil
	return t.why
}

// more says whether there is something to look at.
func (t *telling) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looking, t.again = t.again, false
	return t.looking
}

// next reads the snapshot and tells it.
func (t *telling) next(ctx context.Context) error {
	s := t.agents
	select {
	case <-s.watchers.outOfStep():
		return notHere()
	case <-s.closing:
		return elsewhere()
	default:
	}
	first, within := t.computer == "", readFor
	if first {
		within = firstFor
	}
	var snapshot controlapi.Snapshot
	err := s.inStep(ctx, within, func(ctx context.Context) (err error) {
		if first {
			snapshot, err = s.sync(ctx, t)
		} else {
			snapshot, err = s.syncAgain(ctx, t)
		}
		return err
	})
	if err != nil {
		return err
	}
	if first {
		s.watchers.tells(t, hashOf(purposeCredential, t.credential), s.now().Add(-rand.N(checkAgainAfter)))
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

// passes says whether some of a snapshot ends by itself, with no change of the computer.
func passes(s controlapi.Snapshot) bool {
	return len(s.Knocks)+len(s.RevokedGrants)+len(s.Grants)+len(s.Undelivered) > 0
}

// elsewhere is for who asks a node that is about to end.
func elsewhere() error {
	return &controlapi.Error{
		Code: controlapi.CodeUnavailable, Message: "This server is about to end. Another one answers.",
		RetryAfter: time.Second + rand.N(elsewhereFor-time.Second),
	}
}

package feed

import (
	"cmp"
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

var (
	// errStopped ends what is told because it was stopped.
	errStopped = errors.New("feed: who was told has gone")
	// errEnding ends it because this node is to end.
	errEnding = notHere()
)

// Tell tells the agent with this credential, which has the snapshot of version has,
// each other one, until it is stopped, or until it is over, which ended is told: with a
// refusal where the credential is not good (any more) or this node cannot know of
// changes. What it tells first answers at once, with Unchanged set where the agent has
// it already. tell and ended are called by one goroutine at a time, and there is none
// while nothing changes. When stop has returned neither is called any more; it is not for
// them to call.
func (f *Feed) Tell(credential string, client netip.Addr, has string, tell func(controlapi.Snapshot) error, ended func(error)) (stop func()) {
	t := &telling{feed: f, credential: credential, client: client, has: has, tell: tell, ended: ended}
	f.mu.Lock()
	t.step = f.step
	f.mu.Unlock()
	t.watch.wake, t.watch.end = t.wake, t.endFor
	t.wake()
	return t.stop
}

// telling is one agent that is told.
type telling struct {
	watch      // nobody's before it is found whose the credential is
	feed       *Feed
	credential string
	client     netip.Addr
	tell       func(controlapi.Snapshot) error
	ended      func(error)

	// step is over when this node is not in step any more. Most who are told wait for a change
	// that does not come: what cancels a read is there during one.
	step context.Context

	// Of who looks.
	has   string
	begun bool        // something was told
	clock *time.Timer // wakes it; nil until that is needed

	looks   sync.WaitGroup
	mu      sync.Mutex // protects what follows
	looking bool       // somebody does, or nobody does any more
	again   bool       // there is something to look at since
	why     error      // this is over: the first reason counts
	abort   func()     // the read under way; nil where there is none
}

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

// endFor has it be over for a reason, and break off what it reads. Who looks next finds that.
func (t *telling) endFor(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why = cmp.Or(t.why, context.Cause(t.step), why)
	if t.abort != nil {
		t.abort()
	}
}

// over is why this is over: it was stopped, gave way, could not be told, or this node is not
// in step any more. It is nil where it is not.
func (t *telling) over() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why = cmp.Or(t.why, context.Cause(t.step))
	return t.why
}

func (t *telling) stop() {
	t.endFor(errStopped)
	t.wake()
	t.looks.Wait()
}

// look tells what there is to tell. When it is over nobody looks again.
func (t *telling) look() {
	for t.more() {
		if t.over() == nil {
			if err := t.next(); err != nil {
				t.endFor(err)
			}
		}
		if why := t.over(); why != nil {
			t.finish(why)
			return
		}
	}
}

// more says whether there is something to look at.
func (t *telling) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looking, t.again = t.again, false
	return t.looking
}

func (t *telling) finish(why error) {
	if t.clock != nil {
		t.clock.Stop()
	}
	t.feed.remove(&t.watch)
	if t.begun {
		t.feed.Seen.Note(t.Computer, t.feed.cfg.Now())
	}
	if why == errEnding && !t.begun {
		why = elsewhere()
	}
	if why != errStopped {
		t.ended(why)
	}
}

// next reads the snapshot and tells it. A read that a network swallowed ends by nothing but
// its time, and meanwhile the agent would take what it has for the newest.
func (t *telling) next() (err error) {
	first, within := !t.begun, readFor
	if first {
		within = firstFor
	}
	ctx, done := t.reading(within)
	defer done()
	var snapshot controlapi.Snapshot
	if first {
		snapshot, err = t.feed.cfg.First(ctx, t.credential, t.client, t.found)
	} else {
		snapshot, err = t.feed.cfg.Again(ctx, t.Credential)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return notHere()
	case err != nil:
		return err
	case first:
		t.begins(t.feed.cfg.Now())
	}
	switch {
	case snapshot.Version != t.has:
		err = t.tell(snapshot)
	case first:
		err = t.tell(controlapi.Snapshot{Version: t.has, Unchanged: true})
	}
	t.has = snapshot.Version
	t.setClock(passes(snapshot))
	return err
}

// reading gives a read its time, which ends early where this is over before.
func (t *telling) reading(within time.Duration) (ctx context.Context, done func()) {
	ctx, cancel := context.WithTimeout(t.step, within)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.abort = cancel; t.why != nil {
		cancel()
	}
	return ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.abort = nil
		cancel()
	}
}

// found has it woken by what changes from now on.
func (t *telling) found(c Credential) {
	t.Credential = c
	t.feed.add(&t.watch)
}

// begins has its credential looked up from now on.
func (t *telling) begins(now time.Time) {
	t.begun = true
	t.feed.Seen.Note(t.Computer, now)
	t.feed.mu.Lock()
	defer t.feed.mu.Unlock()
	t.checked = now.Add(-rand.N(checkAgainAfter))
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

func notHere() error {
	return &controlapi.Error{Code: controlapi.CodeUnavailable, Message: "This server cannot say just now whether anything changed. Try again in a moment."}
}

// elsewhere is for who asks a node that is about to end.
func elsewhere() error {
	return &controlapi.Error{
		Code: controlapi.CodeUnavailable, Message: "This server is about to end. Another one answers.",
		RetryAfter: time.Second + rand.N(elsewhereFor-time.Second),
	}
}

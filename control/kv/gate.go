package kv

import (
	"container/list"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// ErrBusy is wrapped, in a *BusyError, by a call of a store elsewhere that so many
// others wait for that this one is better tried later. Nothing was done.
var ErrBusy = errors.New("too many wait for the database")

// BusyError is ErrBusy with the time to wait, which differs from call to call so that
// those who were refused together do not come back together.
type BusyError struct{ RetryAfter time.Duration }

func (*BusyError) Error() string { return ErrBusy.Error() }
func (*BusyError) Unwrap() error { return ErrBusy }

// Bounds of who may wait for a store elsewhere.
const (
	mostWaiting     = 4096
	mostOfOneWaiter = 512 // of one name of WithTurn
	retryLeast      = time.Second
	retryMost       = 30 * time.Second
)

type turnKey struct{}

// turnOf is what WithTurn or WithTries gave.
type turnOf struct {
	name  string
	tries bool
}

// WithTurn names whose the calls with this context are: those of one name wait in
// one turn, and have half of the places at most. The oldest goes first. Calls without a
// name have a turn each. Whoever asks must not be able to have as many names as they like.
func WithTurn(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, turnKey{}, turnOf{name: name})
}

// WithTries is WithTurn for a program that asks again when an answer is late: the newest
// of its calls goes first, because an older one is most likely a try that was given up.
func WithTries(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, turnKey{}, turnOf{name: name, tries: true})
}

// TurnOf is the name that WithTurn or WithTries gave, or "".
func TurnOf(ctx context.Context) string {
	of, _ := ctx.Value(turnKey{}).(turnOf)
	return of.name
}

// firstTurn is no name that anybody has.
const firstTurn = "\x00first"

// First is for what this process has to do for itself whoever else waits: the calls
// with this context go before all others and are never refused. It is not for what
// somebody asked for, unless a few workers do that one after another.
func First(ctx context.Context) context.Context { return WithTurn(ctx, firstTurn) }

// Queue is how many calls wait for the store, and what became of others.
type Queue struct {
	Waiting int
	Refused uint64 // there were too many
	Dropped uint64 // whoever asked went while they waited
}

// gate lets as many calls into the store as there are connections, and has the
// others wait in one line, which is bounded.
//
// Turns come in the order in which they got into the line, so that of many who come
// at once nobody waits longer than the line is: at most twice the median. Within a
// turn the oldest call goes first, or the newest (WithTries). A turn with more calls
// goes to the end of the line again, and stays out of it while half of the places are
// its own: the others' calls must not wait until it has done something slow. Where the
// line is full, one of the longest turn gives way to who has less, so that nobody fills
// it for others. What is cancelled while it waits never reaches the store.
type gate struct {
	patience time.Duration   // without anybody coming through
	closing  <-chan struct{} // nobody is let in any more

	mu       sync.Mutex // guards what follows
	places   int
	inside   int
	first    turn                                    // of First
	line     *list.List                              // of *turn, those that may come in once there is a place
	byName   map[string]*turn                        // those with a name that wait or are inside
	byLength [mostOfOneWaiter + 1]map[*turn]struct{} // from 2 calls that wait
	waiting  int                                     // calls, but those of first
	refused  uint64
	dropped  uint64
	held     time.Duration // about how long a call keeps its place
	passed   time.Time     // when one last came out that the store had answered
}

// turn is calls of one name, those that wait the oldest first.
type turn struct {
	name   string
	tries  bool          // the newest of them goes first
	place  *list.Element // of the line; nil where it is not in it
	calls  []chan error  // each gets nil for a place, or why there is none
	inside int           // calls that have a place
}

func newGate(places int, patience time.Duration, closing <-chan struct{}) *gate {
	return &gate{
		patience: patience, closing: closing, places: places,
		line: list.New(), byName: map[string]*turn{}, held: time.Millisecond,
	}
}

// resize is for before the gate is used.
func (g *gate) resize(places int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.places = places
}

func (g *gate) most() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.places
}

// enter waits for a place; leave gives it back, says whether the store answered
// meanwhile, and must be called once.
func (g *gate) enter(ctx context.Context) (leave func(answered bool), err error) {
	call, t := g.queue(ctx)
	select {
	case err := <-call:
		return g.entered(t, err)
	default:
	}
	since := time.Now()
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	for {
		select {
		case err := <-call:
			return g.entered(t, err)
		case <-ctx.Done():
			g.giveUp(t, call, true)
			return nil, ctx.Err()
		case <-g.closing:
			g.giveUp(t, call, false)
			return nil, ErrClosed
		case <-timer.C:
			// A long line moves; one that does not stands before a database that
			// does not answer.
			if g.stands(since) {
				g.giveUp(t, call, false)
				return nil, ErrUnavailable
			}
			timer.Reset(g.patience)
		}
	}
}

// queue is a call that gets its outcome, at once where there is a place, and its turn.
func (g *gate) queue(ctx context.Context) (call chan error, in *turn) {
	call = make(chan error, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	of, _ := ctx.Value(turnKey{}).(turnOf)
	t := g.turn(of)
	if t != &g.first && !g.makeRoom(t) {
		call <- g.refuse()
		return call, t
	}
	g.wait(t, append(t.calls, call))
	g.letIn()
	return call, t
}

// turn is the one of this name. mu is held.
func (g *gate) turn(of turnOf) *turn {
	if of.name == firstTurn {
		return &g.first
	}
	if t := g.byName[of.name]; t != nil {
		return t
	}
	return &turn{name: of.name, tries: of.tries}
}

// next is which of the calls that wait goes first, and last which one would wait longest
// and gives way.
func (t *turn) next() int {
	if t.tries {
		return len(t.calls) - 1
	}
	return 0
}

func (t *turn) last() int { return len(t.calls) - 1 - t.next() }

// makeRoom reports whether one more call of t may wait. Where the line is full a call of
// a longer turn gives way to it, and where there are as many tries as may be, the oldest.
// mu is held.
func (g *gate) makeRoom(t *turn) bool {
	from := t
	if len(t.calls) < mostOfOneWaiter {
		if g.waiting < mostWaiting {
			return true
		}
		if long := g.longest(); long != nil && len(long.calls) > len(t.calls)+1 {
			from = long
		}
	}
	if len(from.calls) == 0 || from == t && !t.tries {
		return false
	}
	last := from.last()
	from.calls[last] <- g.refuse()
	g.wait(from, slices.Delete(from.calls, last, last+1))
	return true
}

// longest is a turn that no other is longer than, or nil if one call of each waits.
// mu is held.
func (g *gate) longest() *turn {
	for n := mostOfOneWaiter; n > 1; n-- {
		for t := range g.byLength[n] {
			return t
		}
	}
	return nil
}

// wait has these calls of a turn wait. mu is held.
func (g *gate) wait(t *turn, calls []chan error) {
	if t == &g.first {
		t.calls = calls
		return
	}
	before, now := len(t.calls), len(calls)
	t.calls = calls
	g.waiting += now - before
	delete(g.byLength[before], t)
	if now > 1 {
		if g.byLength[now] == nil {
			g.byLength[now] = map[*turn]struct{}{}
		}
		g.byLength[now][t] = struct{}{}
	}
	g.enqueue(t)
}

// enqueue has a turn in the line while it may come in, and known by its name while there
// is anything of it. mu is held.
func (g *gate) enqueue(t *turn) {
	if t == &g.first {
		return
	}
	switch may := len(t.calls) > 0 && t.inside < max(1, g.places/2); {
	case may && t.place == nil:
		t.place = g.line.PushBack(t)
	case !may && t.place != nil:
		g.line.Remove(t.place)
		t.place = nil
	}
	switch {
	case t.name == "":
	case len(t.calls) == 0 && t.inside == 0:
		delete(g.byName, t.name)
	default:
		g.byName[t.name] = t
	}
}

// refuse is why there is no place. mu is held.
func (g *gate) refuse() error {
	g.refused++
	line := g.held * time.Duration(g.waiting/g.places)
	wait := min(retryLeast+line, retryMost/2)
	return &BusyError{RetryAfter: wait + rand.N(wait)}
}

// giveUp takes a call out of its turn, and gives back a place that it got meanwhile.
func (g *gate) giveUp(t *turn, call chan error, gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(t.calls, call)
	if i < 0 {
		if <-call == nil {
			g.release(t)
		}
		return
	}
	g.wait(t, slices.Delete(t.calls, i, i+1))
	if gone {
		g.dropped++
	}
}

func (g *gate) stands(since time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passed.Before(since) || time.Since(g.passed) >= g.patience
}

// entered is the outcome of a call: the way out of its place, or why it has none.
func (g *gate) entered(t *turn, err error) (leave func(answered bool), _ error) {
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return func(answered bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if answered {
			g.passed = time.Now()
			g.held += (g.passed.Sub(began) - g.held) / 16
		}
		g.release(t)
	}, nil
}

// release gives back the place of a call of t. mu is held.
func (g *gate) release(t *turn) {
	g.inside--
	t.inside--
	g.enqueue(t)
	g.letIn()
}

// letIn gives the places that are free to those whose turn it is. mu is held.
func (g *gate) letIn() {
	for g.inside < g.places {
		t := &g.first
		if len(t.calls) == 0 {
			front := g.line.Front()
			if front == nil {
				return
			}
			g.line.MoveToBack(front)
			t = front.Value.(*turn)
		}
		i := t.next()
		t.calls[i] <- nil
		g.inside++
		t.inside++
		g.wait(t, slices.Delete(t.calls, i, i+1))
	}
}

func (g *gate) stats() Queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Queue{Waiting: g.waiting + len(g.first.calls), Refused: g.refused, Dropped: g.dropped}
}

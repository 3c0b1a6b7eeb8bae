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
	mostOfOneWaiter = 64 // of one name of WithTurn
	retryLeast      = time.Second
	retryMost       = 30 * time.Second
)

type turnKey struct{}

// WithTurn names whose the calls with this context are: those of one name wait in
// one turn. Calls without a name have a turn each.
func WithTurn(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, turnKey{}, name)
}

// firstTurn is no name that anybody has.
const firstTurn = "\x00first"

// First is for what this process has to do for itself whoever else waits: the calls
// with this context go before all others and are never refused. It is not for what
// somebody asked for.
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
// turn the newest call goes first: an older one of the same computer is most likely
// a try that was given up. A turn with more calls goes to the end of the line again.
// What is cancelled while it waits never reaches the store.
type gate struct {
	patience time.Duration   // without anybody coming through
	closing  <-chan struct{} // nobody is let in any more

	mu      sync.Mutex // guards what follows
	places  int
	inside  int
	first   turn             // of First
	line    *list.List       // of *turn, those that wait
	byName  map[string]*turn // of line, those with a name
	waiting int              // calls, but those of first
	refused uint64
	dropped uint64
	held    time.Duration // about how long a call keeps its place
	passed  time.Time     // when one last came out that the store had answered
}

// turn is calls that wait, the oldest first.
type turn struct {
	name  string
	at    *list.Element // of the line; nil for first
	calls []chan error  // each gets nil for a place, or why there is none
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
	if t == nil {
		return g.entered(<-call)
	}
	since := time.Now()
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	for {
		select {
		case err := <-call:
			return g.entered(err)
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

// queue is a call with its outcome, or with the turn it waits in.
func (g *gate) queue(ctx context.Context) (call chan error, in *turn) {
	name, _ := ctx.Value(turnKey{}).(string)
	call = make(chan error, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.inside < g.places:
		g.inside++
		call <- nil
		return call, nil
	case name == firstTurn:
		g.first.calls = append(g.first.calls, call)
		return call, &g.first
	case g.waiting >= mostWaiting:
		call <- g.refuse()
		return call, nil
	}
	t := g.byName[name]
	if t == nil {
		t = &turn{name: name}
		t.at = g.line.PushBack(t)
		if name != "" {
			g.byName[name] = t
		}
	}
	if len(t.calls) >= mostOfOneWaiter { // its oldest gives way
		t.calls[0] <- g.refuse()
		t.calls = t.calls[1:]
		g.waiting--
	}
	t.calls = append(t.calls, call)
	g.waiting++
	return call, t
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
			g.handOver()
		}
		return
	}
	t.calls = slices.Delete(t.calls, i, i+1)
	if gone {
		g.dropped++
	}
	if t == &g.first {
		return
	}
	g.waiting--
	if len(t.calls) == 0 {
		g.remove(t)
	}
}

// remove takes a turn out of the line. mu is held.
func (g *gate) remove(t *turn) {
	g.line.Remove(t.at)
	if t.name != "" {
		delete(g.byName, t.name)
	}
}

func (g *gate) stands(since time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passed.Before(since) || time.Since(g.passed) >= g.patience
}

// entered is the outcome of a call: the way out of its place, or why it has none.
func (g *gate) entered(err error) (leave func(answered bool), _ error) {
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
		g.handOver()
	}, nil
}

// handOver gives a place to whose turn it is. mu is held.
func (g *gate) handOver() {
	if len(g.first.calls) > 0 {
		g.first.calls[0] <- nil
		g.first.calls = g.first.calls[1:]
		return
	}
	front := g.line.Front()
	if front == nil {
		g.inside--
		return
	}
	t := front.Value.(*turn)
	newest := len(t.calls) - 1
	t.calls[newest] <- nil
	t.calls = t.calls[:newest]
	g.waiting--
	if newest == 0 {
		g.remove(t)
	} else {
		g.line.MoveToBack(front)
	}
}

func (g *gate) stats() Queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Queue{Waiting: g.waiting + len(g.first.calls), Refused: g.refused, Dropped: g.dropped}
}

package feed

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/bounds"
)

// How often computers may ask. Each credential has a bucket of its own, which a
// computer that works never empties: a waiting sync is one request. A second bucket
// is for what its visitors make it ask, a hundred requests where a hundred sign in at
// once: anybody who has its address can be a visitor, and must not keep the computer
// from hearing whom its owner removes. A refused request counts for the network it
// came from, so that somebody who guesses credentials, or goes on with one that has
// ended, soon costs the store nothing. Computers whose credential was good a moment
// ago are left alone: they may be in the same network.
//
// Each node counts for itself, in memory, because the store is to be spared.
var (
	bucketComputer = bounds.Bucket{Size: 600, Refill: 50 * time.Millisecond}
	bucketRefused  = bounds.Bucket{Size: 60, Refill: time.Second}
)

const (
	// keptFor is how long the count of a good credential that is not used is kept.
	keptFor = 10 * time.Minute
	// paceSize bounds each of the two tables.
	paceSize = 50_000
	// othersWait is how long a credential waits for what becomes of others from its
	// network, and othersLook how often it looks.
	othersWait = 10 * time.Second
	othersLook = 50 * time.Millisecond
)

// Pace is what this node remembers of who asked with which credential. It is safe for
// concurrent use.
type Pace struct {
	now     func() time.Time
	refused *bounds.Buckets[string] // by network, for credentials that were not good

	mu        sync.Mutex
	computers map[string]paced // by hash of a good credential; guarded by mu
	asking    map[string]int   // by network, those that are being looked at; guarded by mu
}

// paced is when the two buckets of a computer are full again.
type paced struct{ own, visits time.Time }

func (c *paced) bucket(visits bool) *time.Time {
	if visits {
		return &c.visits
	}
	return &c.own
}

// full is when the last of them is.
func (c paced) full() time.Time {
	if c.visits.After(c.own) {
		return c.visits
	}
	return c.own
}

// NewPace counts by this clock.
func NewPace(now func() time.Time) *Pace {
	return &Pace{now: now, computers: map[string]paced{}, asking: map[string]int{}, refused: bounds.NewBuckets[string](bucketRefused, paceSize)}
}

// enter takes one from the bucket of a credential, or, where it was not good
// lately, from the network's, to be given back if it is good now.
func (p *Pace) enter(now time.Time, hash, network string, visits bool) (known bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, known := p.computers[hash]
	if !known {
		if wait = p.refused.Take(now, network); wait == 0 {
			p.asking[network]++
		}
		return false, wait
	}
	full := c.bucket(visits)
	*full, wait = bucketComputer.Take(now, *full)
	p.computers[hash] = c
	return true, wait
}

// enterAfterOthers is enter for a credential that is not known. Others from its network
// may have taken all there is only until they turn out to be good, as when the store is
// slow and an office comes back at once; so it waits while any are being looked at.
func (p *Pace) enterAfterOthers(ctx context.Context, hash, network string, visits bool) (known bool, wait time.Duration) {
	late := time.NewTimer(othersWait)
	defer late.Stop()
	for {
		known, wait = p.enter(p.now(), hash, network, visits)
		if known || wait == 0 || !p.others(network) {
			return known, wait
		}
		select {
		case <-time.After(othersLook + rand.N(othersLook)):
		case <-late.C:
			return known, wait
		case <-ctx.Done():
			return known, wait
		}
	}
}

func (p *Pace) others(network string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asking[network] > 0
}

// note keeps what became of a credential that was not known to be good.
func (p *Pace) note(now time.Time, hash, network string, visits, good, refused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking[network]--; p.asking[network] == 0 {
		delete(p.asking, network)
	}
	if !refused {
		p.refused.GiveBack(network)
	}
	if !good {
		return
	}
	bounds.MakeRoom(p.computers, paceSize, func(c paced) bool { return now.Sub(c.full()) > keptFor })
	c := p.computers[hash]
	full := c.bucket(visits)
	*full, _ = bucketComputer.Take(now, *full)
	p.computers[hash] = c
}

// distrust has a credential that was good counted like any other from now on.
func (p *Pace) distrust(now time.Time, hash, network string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.computers, hash)
	p.refused.Take(now, network)
}

// Ask has ask look at the credential with this hash, shown from this network, as often as
// that may be: it refuses with CodeTooMany and RetryAfter when the computer asks too often,
// or when too many credentials from that network were refused. visits is whether a visitor
// had the computer ask, which counts by itself.
func (p *Pace) Ask(ctx context.Context, hash, network string, visits bool, ask func() error) error {
	known, wait := p.enterAfterOthers(ctx, hash, network, visits)
	switch {
	case wait > 0 && known:
		return tooMany("This computer asked for a great deal within a moment. Wait a little, then try again.", wait)
	case wait > 0:
		return tooMany("Many credentials from this network were refused. Wait a little, then try again.", wait)
	}
	err := ask()
	refused := isUnknown(err)
	switch {
	case !known:
		// Who did not wait for the answer has had the store look all the same.
		p.note(p.now(), hash, network, visits, err == nil, refused || err != nil && ctx.Err() != nil)
	case refused:
		p.distrust(p.now(), hash, network)
	}
	return err
}

// isUnknown says whether err refuses a credential because it is not good (any more).
func isUnknown(err error) bool {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	return ok && refusal.Code == controlapi.CodeUnauthorized
}

func tooMany(sentence string, wait time.Duration) error {
	return &controlapi.Error{Code: controlapi.CodeTooMany, Message: sentence, RetryAfter: wait}
}

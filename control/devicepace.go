package control

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
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
	// deviceKept is how long the count of a good credential that is not used is kept.
	deviceKept = 10 * time.Minute
	// devicePaceSize bounds each of the two tables.
	devicePaceSize = 50_000
	// othersWait is how long a credential waits for what becomes of others from its
	// network, and othersLook how often it looks.
	othersWait = 10 * time.Second
	othersLook = 50 * time.Millisecond
)

// devicePace is what this node remembers of who asked with which credential.
type devicePace struct {
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

func newDevicePace() *devicePace {
	return &devicePace{computers: map[string]paced{}, asking: map[string]int{}, refused: bounds.NewBuckets[string](bucketRefused, devicePaceSize)}
}

// enter takes one from the bucket of a credential, or, where it was not good
// lately, from the network's, to be given back if it is good now.
func (p *devicePace) enter(now time.Time, hash, network string, visits bool) (known bool, wait time.Duration) {
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
func (p *devicePace) enterAfterOthers(ctx context.Context, now func() time.Time, hash, network string, visits bool) (known bool, wait time.Duration) {
	late := time.NewTimer(othersWait)
	defer late.Stop()
	for {
		known, wait = p.enter(now(), hash, network, visits)
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

func (p *devicePace) others(network string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asking[network] > 0
}

// note keeps what became of a credential that was not known to be good.
func (p *devicePace) note(now time.Time, hash, network string, visits, good, refused bool) {
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
	bounds.MakeRoom(p.computers, devicePaceSize, func(c paced) bool { return now.Sub(c.full()) > deviceKept })
	c := p.computers[hash]
	full := c.bucket(visits)
	*full, _ = bucketComputer.Take(now, *full)
	p.computers[hash] = c
}

// over has a credential that was good counted like any other from now on.
func (p *devicePace) over(now time.Time, hash, network string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.computers, hash)
	p.refused.Take(now, network)
}

// AuthenticateFrom is Authenticate for a request that came from client: it also
// refuses with CodeTooMany and RetryAfter when the computer asks too often, or
// when too many credentials from that network were refused. visits is whether a
// visitor had the computer ask, which counts by itself. The only computer of local
// mode is its operator's own and may ask as it likes.
func (s *Agents) AuthenticateFrom(ctx context.Context, credential string, client netip.Addr, visits bool) (computer controlapi.Computer, err error) {
	err = s.paced(ctx, credential, client, visits, func(ctx context.Context, hash string) (err error) {
		computer, err = s.authenticate(ctx, hash)
		return err
	})
	return computer, err
}

// paced has ask look at the credential with this hash, as often as that may be, in the
// computer's turn at the store.
func (s *Agents) paced(ctx context.Context, credential string, client netip.Addr, visits bool, ask func(ctx context.Context, hash string) error) error {
	if len(credential) != tokenLen {
		// It costs the store nothing. Were it counted, any web page could have its
		// visitors' browsers use up what is for their networks: without a credential
		// they may ask across sites.
		return credentialUnknown()
	}
	hash, network := hashOf(purposeCredential, credential), clientKey(client)
	if visits {
		ctx = kv.WithTurn(ctx, "visits with "+hash)
	} else {
		ctx = credentialTurn(ctx, hash)
	}
	if s.cfg.Local() {
		return ask(ctx, hash)
	}
	known, wait := s.devices.enterAfterOthers(ctx, s.now, hash, network, visits)
	switch {
	case wait > 0 && known:
		return tooMany("This computer asked for a great deal within a moment. Wait a little, then try again.", wait)
	case wait > 0:
		return tooMany("Many credentials from this network were refused. Wait a little, then try again.", wait)
	}
	err := ask(ctx, hash)
	refused := isUnknown(err)
	switch {
	case !known:
		// Who did not wait for the answer has had the store look all the same.
		s.devices.note(s.now(), hash, network, visits, err == nil, refused || err != nil && ctx.Err() != nil)
	case refused:
		s.devices.over(s.now(), hash, network)
	}
	return err
}

func tooMany(sentence string, wait time.Duration) error {
	return &controlapi.Error{Code: controlapi.CodeTooMany, Message: sentence, RetryAfter: wait}
}

package control

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"porchlight/control/controlapi"
)

// How often computers may ask. A credential is worth a bucket of its own, which a
// computer that works never sees the bottom of: a held sync is one request, and a
// hundred visitors who sign in at once are a hundred. What was refused counts for
// the network it came from, so that whoever tries credentials, or asks on with one
// that is over, costs the store nothing after a while. Computers whose credential
// was good a moment ago are not touched by that: they may be in the same network.
//
// Each node counts for itself and in memory: the store is what is spared.
var (
	bucketComputer = bucket{600, 50 * time.Millisecond}
	bucketRefused  = bucket{60, time.Second}
)

const (
	// deviceKept is how long a good credential that rests keeps its bucket.
	deviceKept = 10 * time.Minute
	// devicePaceSize bounds each of the two tables.
	devicePaceSize = 50_000
)

// bucket holds size requests and gets one more every refill.
type bucket struct {
	size   int
	refill time.Duration
}

// take is the generic cell rate algorithm (ITU-T I.371): instead of a count it
// keeps the time at which the bucket is full again. wait is how long until the
// next request is free; full is then unchanged.
func (b bucket) take(now, full time.Time) (after time.Time, wait time.Duration) {
	depth := time.Duration(b.size) * b.refill
	if full.Before(now) || full.Sub(now) > 2*depth { // the latter by a clock that was set back
		full = now
	}
	after = full.Add(b.refill)
	if wait = after.Sub(now) - depth; wait > 0 {
		return full, wait
	}
	return after, 0
}

// devicePace is what this node remembers of who asked with which credential.
type devicePace struct {
	mu        sync.Mutex
	computers map[string]time.Time // by hash of a good credential: when its bucket is full again; guarded by mu
	refused   map[string]time.Time // the same by network, for credentials that were not good; guarded by mu
}

func newDevicePace() *devicePace {
	return &devicePace{computers: map[string]time.Time{}, refused: map[string]time.Time{}}
}

// enter takes one from the bucket of a credential, or, where it was not good
// lately, from the network's, to be given back if it is good now.
func (p *devicePace) enter(now time.Time, hash, network string) (known bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	full, known := p.computers[hash]
	if known {
		p.computers[hash], wait = bucketComputer.take(now, full)
		return true, wait
	}
	forget(p.refused, now, 0)
	p.refused[network], wait = bucketRefused.take(now, p.refused[network])
	return false, wait
}

// settle notes what became of a credential that was not known to be good.
func (p *devicePace) settle(now time.Time, hash, network string, good, refused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !refused {
		p.refused[network] = p.refused[network].Add(-bucketRefused.refill)
	}
	if good {
		forget(p.computers, now, deviceKept)
		p.computers[hash], _ = bucketComputer.take(now, p.computers[hash])
	}
}

// over has a credential that was good counted like any other from now on.
func (p *devicePace) over(now time.Time, hash, network string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.computers, hash)
	p.refused[network], _ = bucketRefused.take(now, p.refused[network])
}

// forget makes room in a table that is full: what has been whole for longer than
// kept goes, then any.
func forget(table map[string]time.Time, now time.Time, kept time.Duration) {
	if len(table) < devicePaceSize {
		return
	}
	for key, full := range table {
		if now.Sub(full) > kept {
			delete(table, key)
		}
	}
	for key := range table {
		if len(table) < devicePaceSize*9/10 {
			return
		}
		delete(table, key)
	}
}

// AuthenticateFrom is Authenticate for a request that came from client: it also
// refuses with CodeTooMany and RetryAfter when the computer asks too often, or
// when too many credentials from that network were refused. The only computer of
// local mode is its operator's own and may ask as it likes.
func (s *Service) AuthenticateFrom(ctx context.Context, credential string, client netip.Addr) (controlapi.Computer, error) {
	if s.Local() {
		return s.Authenticate(ctx, credential)
	}
	hash, network := hashOf(purposeCredential, credential), clientKey(client)
	known, wait := s.devices.enter(s.now(), hash, network)
	switch {
	case wait > 0 && known:
		return controlapi.Computer{}, tooMany("This computer asked for a great deal within a moment. Wait a little, then try again.", wait)
	case wait > 0:
		return controlapi.Computer{}, tooMany("Many credentials from this network were refused. Wait a little, then try again.", wait)
	}
	computer, err := s.Authenticate(ctx, credential)
	refused := IsRefusal(err, controlapi.CodeUnauthorized)
	switch {
	case !known:
		s.devices.settle(s.now(), hash, network, err == nil, refused)
	case refused:
		s.devices.over(s.now(), hash, network)
	}
	return computer, err
}

func tooMany(sentence string, wait time.Duration) error {
	return &controlapi.Error{Code: controlapi.CodeTooMany, Message: sentence, RetryAfter: wait}
}

// Package bounds holds down what strangers may ask for: how often, by a bucket for
// each key, how much is remembered of them, and what counts as one of them by
// its address. It decides nothing: the numbers and the refusals are the callers'.
package bounds

import (
	"net/netip"
	"sync"
	"time"
)

// Bucket holds Size requests and gets one more every Refill.
type Bucket struct {
	Size   int
	Refill time.Duration
}

// Take is the generic cell rate algorithm (ITU-T I.371): instead of a count it
// keeps the time at which the bucket is full again. wait is how long until the
// next request is free; full is then unchanged.
func (b Bucket) Take(now, full time.Time) (after time.Time, wait time.Duration) {
	depth := time.Duration(b.Size) * b.Refill
	if full.Before(now) || full.Sub(now) > 2*depth { // the latter by a clock that was set back
		full = now
	}
	after = full.Add(b.Refill)
	if wait = after.Sub(now) - depth; wait > 0 {
		return full, wait
	}
	return after, 0
}

// Buckets is a bucket for each key. It is safe for concurrent use.
type Buckets[K comparable] struct {
	bucket Bucket
	most   int

	mu   sync.Mutex
	full map[K]time.Time // guarded by mu: when each is full again
}

// NewBuckets remembers the buckets of most keys.
func NewBuckets[K comparable](bucket Bucket, most int) *Buckets[K] {
	return &Buckets[K]{bucket: bucket, most: most, full: map[K]time.Time{}}
}

// Take takes one from the bucket of key. Where there is none, it says how long to
// wait for it.
func (b *Buckets[K]) Take(now time.Time, key K) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	full, known := b.full[key]
	if !known {
		MakeRoom(b.full, b.most, func(full time.Time) bool { return !full.After(now) })
	}
	b.full[key], wait = b.bucket.Take(now, full)
	return wait
}

// GiveBack undoes a Take that had not to wait.
func (b *Buckets[K]) GiveBack(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if full, known := b.full[key]; known {
		b.full[key] = full.Add(-b.bucket.Refill)
	}
}

// Minute counts what happens within a minute, such as lines of a log that strangers cause.
// It is safe for concurrent use, and the zero value is ready.
type Minute struct {
	mu    sync.Mutex // protects what follows
	began time.Time
	count int
}

// Count counts one more, and says which of its minute that is, from 1.
func (m *Minute) Count(now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.began).Abs() >= time.Minute {
		m.began, m.count = now, 0
	}
	m.count++
	return m.count
}

// MakeRoom has a table of most rows take one more: when it is full, the rows that
// have ended go, then any, until a tenth of it is free.
func MakeRoom[K comparable, V any](table map[K]V, most int, ended func(V) bool) {
	if len(table) < most {
		return
	}
	for key, row := range table {
		if ended(row) {
			delete(table, key)
		}
	}
	for key := range table {
		if len(table) < most*9/10 {
			return
		}
		delete(table, key)
	}
}

// Network is the network of so many bits that an address is in, by its family: an
// IPv4 address in IPv6 clothes is one of IPv4. It is the zero prefix for what is
// no address.
func Network(addr netip.Addr, bits4, bits6 int) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := bits4
	if addr.Is6() {
		bits = bits6
	}
	network, _ := addr.Prefix(bits)
	return network
}

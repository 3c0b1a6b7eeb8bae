package http2

import (
	"slices"
	"time"

	"porchlight/agent/proxy/limits"
)

// A budget is what a visitor may have for nothing: some at once, and so many a second.
// The mutex of the connection guards it.
type budget struct {
	left, most int
	each       time.Duration // after which one more is there
	since      time.Time     // when left was last made up
}

func newBudget(most, perSecond int) budget {
	return budget{left: most, most: most, each: time.Second / time.Duration(perSecond), since: time.Now()}
}

// spend is false when there is less than n left. The clock is asked only when there
// seems to be.
func (b *budget) spend(n int) bool {
	if b.left < n {
		now := time.Now()
		b.give(int(min(now.Sub(b.since)/b.each, time.Duration(b.most))))
		b.since = now
	}
	if b.left < n {
		return false
	}
	b.left -= n
	return true
}

func (b *budget) give(n int) { b.left = min(b.most, b.left+n) }

// inflow is a window for what the visitor sends.
type inflow struct {
	open   int // what the visitor may send
	unsaid int // what it may send besides, and was not told
}

// spend is false when the visitor sent more than it may.
func (f *inflow) spend(n int) bool {
	if n > f.open {
		return false
	}
	f.open -= n
	return true
}

// add opens the window again; say is how far the visitor is to be told, which it is
// when a quarter of the window has gathered.
func (f *inflow) add(n int) (say uint32) {
	f.unsaid += n
	if f.unsaid < limits.Window/4 {
		return 0
	}
	say = uint32(f.unsaid)
	f.open += f.unsaid
	f.unsaid = 0
	return say
}

// lately are the last streams that we reset, as many as may be open. Trailers that a visitor
// sent before it heard of that are dropped (RFC 9113, section 5.1); those of other streams
// that are gone are an error.
type lately struct {
	ids  []uint32
	next int // place of the oldest, once there is no room
}

func (l *lately) add(id uint32) {
	if l.has(id) {
		return
	}
	if len(l.ids) < limits.Streams {
		l.ids = append(l.ids, id)
		return
	}
	l.ids[l.next] = id
	l.next = (l.next + 1) % len(l.ids)
}

func (l *lately) has(id uint32) bool { return slices.Contains(l.ids, id) }

package kv

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// clockApart is how far a machine's clock may be from the database's before that one
// counts: what the two are apart is known no better than the way between them.
const clockApart = time.Second

// clock is the time by which the values of a database expire: that of the database, so
// that all who share it agree, whatever their own clocks say.
type clock struct {
	machine func() time.Time
	given   bool         // machine is the caller's, and counts
	ahead   atomic.Int64 // of the database, in nanoseconds
}

// newClock is the time of given, where that is not nil.
func newClock(given func() time.Time) *clock {
	if given != nil {
		return &clock{machine: given, given: true}
	}
	return &clock{machine: time.Now}
}

func (c *clock) now() time.Time { return c.machine().Add(time.Duration(c.ahead.Load())) }

// askClock is a number, which no setting of a role or a database writes another way.
const askClock = `select (extract(epoch from clock_timestamp()) * 1000000)::bigint`

// ask has the database tell its time. Where it does not, what was heard before stays: no
// connection is given up for that.
func (c *clock) ask(ctx context.Context, conn interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) {
	if c.given {
		return
	}
	var theirs int64 // microseconds
	asked, began := c.machine(), time.Now()
	if conn.QueryRow(ctx, askClock, pgx.QueryExecModeSimpleProtocol).Scan(&theirs) == nil {
		took := time.Since(began)
		c.heard(time.UnixMicro(theirs).Sub(asked.Add(took/2)), took)
	}
}

// heard takes what the database is ahead, found on a way that took so long.
func (c *clock) heard(ahead, took time.Duration) {
	if off := ahead - time.Duration(c.ahead.Load()); off.Abs() < max(clockApart, took/2) {
		return // as known, as far as the way can tell
	}
	if ahead.Abs() < clockApart {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
}

// Clock is the time by which a store's values expire. Where several share it that is
// the database's, once it differs by a second from this machine's.
func Clock(s Store) func() time.Time {
	if p, ok := s.(*pgStore); ok {
		return p.now
	}
	return time.Now
}

// ClockAhead is by how much the database's clock is ahead of this machine's, where that
// is more than a second, or behind where it is negative; 0 for a store of this machine.
func ClockAhead(s Store) time.Duration {
	if p, ok := s.(*pgStore); ok {
		return time.Duration(p.clock.ahead.Load())
	}
	return 0
}

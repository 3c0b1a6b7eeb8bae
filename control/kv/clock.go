package kv

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// clockApart is how far a machine's clock may be from the database's before that one
// counts: what the two are apart is known no better than the way between them.
const clockApart = time.Second

// clockJump is what a clock may change before rows that are over by it are not deleted
// until a later look agrees: a standby that took over may have the wrong year, and a row
// that is deleted does not come back when somebody sets its clock.
const clockJump = time.Hour

// clock is the time by which the values of a database expire: that of the database, so
// that all who share it agree, whatever their own clocks say.
type clock struct {
	machine func() time.Time
	given   bool                        // machine is the caller's, and counts
	changed func(was, is time.Duration) // told what the database is ahead; nil for nobody
	ahead   atomic.Int64                // of the database, in nanoseconds

	mu    sync.Mutex // guards what follows, and ahead against two that hear at once
	known bool       // the database has told its time
	doubt int        // how many sweeps have to agree with a jump
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

// ask has the database tell its time. Where it does not, what was heard before stays.
func (c *clock) ask(ctx context.Context, conn interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) error {
	if c.given {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var theirs int64 // microseconds
	asked, began := c.machine(), time.Now()
	err := conn.QueryRow(ctx, askClock, pgx.QueryExecModeSimpleProtocol).Scan(&theirs)
	if err == nil {
		took := time.Since(began)
		c.heard(time.UnixMicro(theirs).Sub(asked.Add(took/2)), took)
	}
	return err
}

// insist asks a few times, until the database has told its time once.
func (c *clock) insist(ctx context.Context, pool *pgxpool.Pool) {
	for range 3 {
		if c.isKnown() || c.ask(ctx, pool) == nil {
			return
		}
	}
}

func (c *clock) isKnown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known || c.given
}

// heard takes what the database is ahead, found on a way that took so long.
func (c *clock) heard(ahead, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = true
	was := time.Duration(c.ahead.Load())
	if off := ahead - was; off.Abs() < max(clockApart, took/2) {
		return // as known, as far as the way can tell
	}
	if ahead.Abs() < clockApart {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
	if (ahead - was).Abs() > clockJump {
		c.doubt = 2
	}
	if c.changed != nil {
		c.changed(was, ahead)
	}
}

// maySweep is asked by each sweep, which comes minutes after the one before, after it
// asked the database, which told its time or did not.
func (c *clock) maySweep(answered bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered && c.doubt > 0 {
		c.doubt--
	}
	return c.doubt == 0
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
// It is not known while the database has not told its time.
func ClockAhead(s Store) (ahead time.Duration, known bool) {
	if p, ok := s.(*pgStore); ok {
		return p.ClockAhead()
	}
	return 0, true
}

// ClockAhead is for whoever watches how the store does.
func (p *pgStore) ClockAhead() (ahead time.Duration, known bool) {
	return time.Duration(p.clock.ahead.Load()), p.clock.isKnown()
}

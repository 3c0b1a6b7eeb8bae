package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Codes of SQLSTATE that mean something to us.
const (
	codeSerialization = "40001"
	codeUnknown       = "40003" // statement_completion_unknown
	codeReadOnly      = "25006" // of a standby, or of a server about to be replaced
	codeShutdown      = "57P01"
	codeDiskFull      = "53100"
	codeMemoryFull    = "53200"
	codeDeadlock      = "40P01"
	codeNoTable       = "42P01"
)

// noLock are the codes with which a server refuses lockWriters for good: it does
// not know it, or this user may not.
var noLock = []string{"0A000", "42601", "42501"}

const (
	// conflictsMost bounds the runs of one function. After each there is a random
	// pause, up to a bound that doubles from conflictPauseFirst to conflictPauseLast.
	conflictsMost      = 1000
	conflictPauseFirst = time.Millisecond
	conflictPauseLast  = 64 * time.Millisecond
	// conflictsPatient is how many runs are lost before the next one makes other
	// writers wait. Otherwise somebody who changes a few rows again and again would
	// keep out a transaction that reads all of them, such as that of an owner who
	// takes access away.
	conflictsPatient = 12
	// awayPause is the pause while the database is away.
	awayPauseFirst = 50 * time.Millisecond
	awayPauseLast  = time.Second
	// openPause is the pause of openPostgres, for whose database no request waits.
	openPauseFirst = 500 * time.Millisecond
	openPauseLast  = 10 * time.Second
)

// call is one call of the store, with all its attempts.
type call struct {
	p         *pgStore
	ctx       context.Context
	conflicts int       // lost so far
	failures  int       // of the connection, so far
	since     time.Time // when the first of the failures was

	leave func(answered bool) // gives its place back; nil while it has none
	lost  bool                // the database did not answer since it got its place
}

// begin refuses calls of a closed store, waits for a place, and has Close wait.
func (p *pgStore) begin(ctx context.Context) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !p.run() {
		return nil, ErrClosed
	}
	c := &call{p: p, ctx: ctx}
	if err := c.enter(); err != nil {
		p.running.Done()
		return nil, err
	}
	return c, nil
}

// run has Close wait for one more call, unless the store is closed.
func (p *pgStore) run() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if !p.closed {
		p.running.Add(1)
	}
	return !p.closed
}

func (c *call) enter() (err error) {
	c.lost = false
	c.leave, err = c.p.gate.enter(c.ctx)
	return err
}

// stepOut gives the place back, if the call has one.
func (c *call) stepOut() {
	if c.leave != nil {
		c.leave(!c.lost)
		c.leave = nil
	}
}

func (c *call) end() {
	c.stepOut()
	c.p.running.Done()
}

func (c *call) acquire(ctx context.Context) (*pgxpool.Conn, error) { return c.p.pool.Acquire(ctx) }

// discard gives a connection back after err. It closes one that may be broken: err
// is then not the answer of a healthy server.
func (c *call) discard(conn *pgxpool.Conn, err error) {
	if conn == nil {
		return
	}
	if troubleOf(err) == away {
		c.abandon(err)
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		_ = conn.Conn().Close(ctx) // it is broken, or is given up
	}
	conn.Release() // which closes what is not idle
}

// abandon ends all connections when err says that their server is another one's now:
// those that are idle as well, before somebody finds that out with each of them.
func (c *call) abandon(err error) {
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok && (pe.Code == codeReadOnly || pe.Code == codeShutdown) {
		c.p.pool.Reset()
	}
}

// trouble sorts errors by what can be done.
type trouble int

const (
	final    trouble = iota // nothing
	conflict                // run again
	away                    // wait for the database, then run again
)

func troubleOf(err error) trouble {
	if err == nil {
		return final
	}
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pe.Code {
		case codeSerialization, codeDeadlock:
			return conflict
		case codeShutdown, "57P02", "57P03", "57P05", // crashed, starting, idle for too long
			"25P03", "53300", // idle in a transaction, too many connections
			codeReadOnly, codeUnknown:
			return away
		}
		if pe.Code[:min(2, len(pe.Code))] == "08" { // of the connection
			return away
		}
		return final
	}
	return away
}

// again decides what follows err: it pauses and returns nil when another
// attempt is worth while, or returns what to tell the caller.
func (c *call) again(err error) (again error) {
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	if c.lost = troubleOf(err) == away; c.lost && c.leave != nil {
		// Others are to find out as soon, and not to wait behind this one.
		c.stepOut()
		defer func() {
			if again == nil {
				again = c.enter()
			}
		}()
	}
	var pause time.Duration
	switch troubleOf(err) {
	case conflict:
		if c.conflicts++; c.conflicts >= conflictsMost {
			return fmt.Errorf("%w: %w", ErrContended, err)
		}
		pause = jitter(conflictPauseFirst, conflictPauseLast, c.conflicts)
	case away:
		now := time.Now() // not the store's clock, which tells when values expire
		if c.failures++; c.failures == 1 {
			c.since = now
		}
		if now.Sub(c.since) > c.p.patience {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		pause = jitter(awayPauseFirst, awayPauseLast, c.failures)
	default:
		return c.explain(err)
	}
	select {
	case <-time.After(pause):
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-c.p.closing:
		return ErrClosed
	}
}

// jitter is a random pause whose bound doubles with every attempt.
func jitter(first, last time.Duration, attempt int) time.Duration {
	bound := min(last, first<<min(attempt-1, 20))
	return time.Duration(rand.Int64N(int64(bound)) + 1)
}

// exec runs a statement that may run twice, outside any transaction, and says
// how many rows it touched.
func (c *call) exec(sql string, args ...any) (int, error) {
	for {
		tag, err := c.p.pool.Exec(c.ctx, sql, args...)
		if err == nil {
			return int(tag.RowsAffected()), nil
		}
		c.abandon(err)
		if err := c.again(err); err != nil {
			return 0, err
		}
	}
}

func (c *call) newTx(begin string) *pgTx {
	return &pgTx{call: c, begin: begin, overlay: overlay{now: c.p.now().Truncate(time.Microsecond)}}
}

func (c *call) view(fn func(Tx) error) error {
	t := c.newTx(beginView)
	t.readOnly = true
	defer t.end()
	err := fn(t)
	if t.err != nil && t.conn == nil {
		return t.err // of the first read, which has tried again and explained
	}
	if t.err != nil {
		return c.explain(t.err)
	}
	return err
}

// explain is the database's error as the caller gets it when there will be no
// further attempt.
func (c *call) explain(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrClosed), errors.Is(err, ErrUnavailable), errors.Is(err, ErrContended), errors.Is(err, ErrBusy):
		return err
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case troubleOf(err) == away:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok && (pe.Code == codeDiskFull || pe.Code == codeMemoryFull) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("kv: the database refused: %w", err)
}

// open begins a transaction that is not fn's but the store's own. Its end must
// be called.
func (c *call) open(begin string) (*pgTx, error) {
	t := c.newTx(begin)
	for {
		var err error
		if t.conn, err = c.acquire(c.ctx); err == nil {
			if _, err = t.conn.Exec(c.ctx, begin); err == nil {
				return t, nil
			}
		}
		c.discard(t.conn, err)
		t.conn = nil
		if err := c.again(err); err != nil {
			return nil, err
		}
	}
}

func (c *call) update(fn func(Tx) error) error {
	var ahead []string // what fn asked for in the run before
	for {
		t := c.newTx(beginUpdate)
		t.alone = c.conflicts >= conflictsPatient && !c.p.cannotLock.Load()
		refused, err := c.run(t, ahead, fn)
		if err == nil {
			return refused
		}
		if ended, ok := errors.AsType[*endedError](err); ok {
			return ended.error
		}
		if t.cannotLock(err) { // and only writes, or its first read had found that out
			continue
		}
		if err := c.again(err); err != nil {
			return err
		}
		ahead = t.wasAsked()
	}
}

// cannotLock says that err is a server's refusal of lockWriters, and has nobody send it
// that again.
func (t *pgTx) cannotLock(err error) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !t.alone || !slices.Contains(noLock, pe.Code) {
		return false
	}
	t.call.p.cannotLock.Store(true)
	return true
}

// endedError is an error after which there is no further attempt.
type endedError struct{ error }

// run is one attempt: fn, and the commit when it returns nil. What is known to be read is
// read ahead, together: the shorter an attempt takes, the fewer others it is in conflict
// with. refused is fn's error, and err the database's, which matters more: what fn saw
// before it may never have been.
func (c *call) run(t *pgTx, ahead []string, fn func(Tx) error) (refused, err error) {
	defer t.end() // also when fn panics or calls runtime.Goexit
	if refused = t.readAhead(ahead); refused == nil {
		refused = fn(t)
	}
	t.returned = true
	if t.err != nil {
		if t.conn == nil { // the first read, which has tried again already
			return nil, &endedError{t.err}
		}
		if troubleOf(t.err) == away {
			c.discard(t.conn, t.err)
			t.conn = nil
		}
		return nil, t.err
	}
	if refused != nil {
		return refused, nil
	}
	return nil, c.commit(t)
}

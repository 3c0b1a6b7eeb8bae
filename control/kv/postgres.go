package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrUnavailable is wrapped when the database cannot be reached, or went
	// away and did not come back in time. Nothing was kept.
	ErrUnavailable = errors.New("the database does not answer")
	// ErrFull is wrapped by an Update for which the database has no room: its disk or
	// its memory is full. Nothing was kept; what is there can be read.
	ErrFull = errors.New("there is no room for the change")
	// ErrContended is wrapped by an Update that lost to its neighbours too
	// often. Nothing was kept.
	ErrContended = errors.New("kv: too many others change the same keys")
	// ErrOutcomeUnknown is wrapped by an Update whose database went away during
	// the commit and stayed away: what it wrote is there as a whole or not at
	// all, and nobody can tell which.
	ErrOutcomeUnknown = errors.New("the database went away while a change was being kept; look again before repeating it")
)

const (
	connectTimeout = 5 * time.Second
	// connectEach is connectTimeout where one of several servers may be silent for as
	// long as it takes to replace it.
	connectEach = 2 * time.Second
	// defaultPatience: a restart takes a few seconds, and the person who asked
	// still waits then.
	defaultPatience = 10 * time.Second
	// commitWait bounds a commit, and then the search for its outcome.
	commitWait = 30 * time.Second
)

// pgStore keeps a Store in a PostgreSQL database that several processes may
// share. It does not need what another server of the same protocol may lack: the
// settings of prepareSession, and lockWriters.
//
// An Update is one SERIALIZABLE transaction. The first read begins it in the
// same round trip; writes stay in this process, where the function's own reads
// see them, and go out together with the COMMIT. A transaction that lost to a
// neighbour (40001, 40P01) runs again after a random, growing pause; one that has
// lost a dozen times has other writers wait for it, so that nobody is kept out for
// ever.
//
// A View is REPEATABLE READ, READ ONLY: it neither stops a writer nor is
// stopped by one, and its function runs once.
//
// A connection may break after COMMIT was sent and before the answer came. To
// know what became of it, each connection owns a row of the table kv_writer, and
// every transaction writes its own number there. Afterwards, another connection
// closes that row: this waits for the transaction if it still runs, keeps it
// from committing if it has not arrived yet, and returns the number of the last
// one that did commit. Then Update reports success, or runs again. Only when
// the database stays away does it return ErrOutcomeUnknown.
type pgStore struct {
	pool     *pgxpool.Pool
	gate     *gate // as many places as connections that calls may use
	clock    *clock
	patience time.Duration

	cannotLock atomic.Bool // the server does not know lockWriters

	closing chan struct{} // closed by Close
	mu      sync.RWMutex  // guards closed, and running against its Wait
	closed  bool
	running sync.WaitGroup // calls
}

// schema makes what is missing. expires is null for what stays; the index finds
// what to sweep. Pages are left a part free, so that a row that changes stays on
// its page and the indexes need not hear of it: in a SERIALIZABLE transaction a
// new entry on a page of the index is a conflict with whoever read that page.
// The view is for people at a psql prompt.
var schema = []string{
	`create table if not exists kv (
		key     bytea primary key,
		value   bytea not null,
		expires timestamptz
	) with (fillfactor = 70)`,
	`create index if not exists kv_expires on kv (expires) where expires is not null`,
	`create table if not exists kv_writer (
		id    bytea primary key,
		last  bigint not null,
		ended boolean not null default false,
		seen  timestamptz not null default now()
	)`,
	`create view kv_readable as
		select encode(key, 'escape') as key, encode(value, 'escape') as value, expires from kv`,
}

// onlyReads finds what asks for servers that take no changes.
var onlyReads = regexp.MustCompile(`target_session_attrs\s*=\s*'?(read-only|standby|prefer-standby)`)

// openPostgres connects to the database of url (postgres://user:password@host/name,
// or postgres: and what libpq calls a connection string; it may be on the far side
// of a pooler that keeps sessions, and may name several servers, of which the one
// that takes changes is used) and makes the tables when they are not there.
// The connections it opens, and the goroutine that tends them, are ended by Close.
func openPostgres(ctx context.Context, url string, opts Options) (Store, error) {
	p, cfg, err := connectPostgres(ctx, url, opts)
	if err != nil {
		return nil, err
	}
	waiting := opts.Waiting
	if waiting != nil {
		waiting = func(cause error, pause time.Duration) { opts.Waiting(openFailure(cfg.ConnConfig, cause), pause) }
	}
	if err := p.awaitSchema(ctx, opts.Wait, waiting); err != nil {
		p.pool.Close()
		return nil, openFailure(cfg.ConnConfig, err)
	}
	p.clock.insist(ctx, p.pool)
	if measures(url) {
		p.gate.resize(p.connsWanted(ctx))
	}
	return p, nil
}

// measures says whether the number of connections follows from how far the database is.
func measures(url string) bool { return !strings.Contains(url, "pool_max_conns") }

// connectPostgres is the store without a look at its tables.
func connectPostgres(ctx context.Context, url string, opts Options) (*pgStore, *pgxpool.Config, error) {
	if s := strings.TrimPrefix(url, "postgres:"); !strings.HasPrefix(s, "//") {
		url = s
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The parser's error quotes the address without its password, as far
		// as it understood where the password is; that is not far enough.
		return nil, nil, errors.New("the address of the database is not understood; it looks like postgres://user:password@host:5432/name")
	}
	if measures(url) {
		cfg.MaxConns = mostConns // and the gate says how many of them
	}
	if !strings.Contains(url, "connect_timeout") {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
		if len(servers(cfg.ConnConfig)) > 1 {
			cfg.ConnConfig.ConnectTimeout = connectEach
		}
	}
	// Rows are read to be changed: a server that only copies another one is of no
	// use, however the address came to lead to it.
	if cfg.ConnConfig.ValidateConnect == nil {
		cfg.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	} else if onlyReads.MatchString(url) {
		return nil, nil, errors.New("the rows change: in the address of the database, target_session_attrs has to be read-write")
	}
	cfg.PingTimeout = connectTimeout
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "porchlight"
	}
	clock := newClock(opts.Now)
	clock.changed = opts.ClockChanged
	if opts.machine != nil {
		clock.machine = opts.machine
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return prepareSession(ctx, conn, clock) }
	if opts.Patience <= 0 {
		opts.Patience = defaultPatience
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open the database: %w", err)
	}
	p := &pgStore{pool: pool, clock: clock, patience: opts.Patience, closing: make(chan struct{})}
	p.gate = newGate(int(cfg.MaxConns), opts.Patience, p.closing)
	return p, cfg, nil
}

// prepareSession is run on every new connection.
func prepareSession(ctx context.Context, conn *pgx.Conn, clock *clock) error {
	// While the table is small the planner would read it whole, and in a
	// SERIALIZABLE transaction having read everything is a conflict with every
	// writer. No statement here is long enough to be compiled first. Each is planned
	// once: the server takes four keys for so much cheaper than any number of them that
	// it would plan at every call, which takes longer than to read the rows. A commit is
	// promised to be on disk. A process that hangs must not hold its snapshot for ever.
	for _, settings := range []string{
		`select set_config('synchronous_commit', case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end, false),
			set_config('idle_in_transaction_session_timeout', '60000', false)`,
		`select set_config('enable_seqscan', 'off', false),
			set_config('enable_bitmapscan', 'off', false),
			set_config('jit', 'off', false),
			set_config('plan_cache_mode', 'force_generic_plan', false)`,
	} {
		_, err := conn.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol)
		// Another server of the same protocol, or an older one, may not know one of these.
		// It works without them, and what is promised does not hang on what is quicker.
		if _, ok := errors.AsType[*pgconn.PgError](err); err != nil && !ok {
			return err
		}
	}
	if err := clock.ask(ctx, conn); err != nil && conn.IsClosed() {
		return err
	}
	id := make([]byte, 16)
	rand.Read(id)
	conn.PgConn().CustomData()[writerData] = &writerRow{id: id}
	return nil
}

// awaitSchema is makeSchema, again and again within wait while the database is
// away: after a crash of the machine it is still recovering when we start.
func (p *pgStore) awaitSchema(ctx context.Context, wait time.Duration, waiting func(error, time.Duration)) error {
	began := time.Now() // not the store's clock, which tells when values expire
	for attempt := 1; ; attempt++ {
		err := p.makeSchema(ctx)
		if err == nil || troubleOf(err) != away || ctx.Err() != nil || time.Since(began) >= wait {
			return err
		}
		again := openPauseFirst/2 + jitter(openPauseFirst, openPauseLast, attempt)
		if waiting != nil {
			waiting(err, again)
		}
		if pause(ctx, again) != nil {
			return err
		}
	}
}

// makeSchema runs again when processes that start together got in each other's
// way, which "if not exists" does not prevent.
func (p *pgStore) makeSchema(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := p.trySchema(ctx)
		pe, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || attempt == 10 {
			return err
		}
		switch pe.Code {
		case "23505", "42P07", "42710", "XX000", codeSerialization, codeDeadlock:
		default:
			return err
		}
	}
}

func (p *pgStore) trySchema(ctx context.Context) error {
	// A user who may not make tables can still use those that are there.
	if _, err := p.pool.Exec(ctx, "select 1 from kv_readable, kv_writer limit 0"); err == nil {
		return nil
	} else if pe, ok := errors.AsType[*pgconn.PgError](err); !ok || pe.Code != codeNoTable {
		return err
	}
	for _, statement := range schema {
		if _, err := p.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// now is the time by which values expire.
func (p *pgStore) now() time.Time { return p.clock.now() }

// View runs fn on a snapshot. When the database goes away between two reads the
// error wraps ErrUnavailable.
func (p *pgStore) View(ctx context.Context, fn func(Tx) error) error {
	c, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer c.end()
	return c.view(fn)
}

// ViewOf is one statement, which is a snapshot without a transaction around it.
func (p *pgStore) ViewOf(ctx context.Context, rows Rows, fn func(Tx) error) error {
	if err := rows.check(); err != nil {
		return err
	}
	items, err := func() ([]Item, error) {
		c, err := p.begin(ctx)
		if err != nil {
			return nil, err
		}
		defer c.end()
		return c.readRows(rows)
	}()
	if err != nil {
		return err
	}
	return newRowsTx(rows, items).run(fn)
}

// Update runs fn until one run of it is committed, or is refused by fn. Once a
// commit has been sent its outcome is awaited even when ctx ends.
func (p *pgStore) Update(ctx context.Context, fn func(Tx) error) error {
	c, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer c.end()
	return c.update(fn)
}

// PutAll is one statement outside a transaction. It needs no order among the others: that
// some row was read before it was put here says nothing about when an Update happened.
func (p *pgStore) PutAll(ctx context.Context, ttl time.Duration, rows ...Item) error {
	if err := checkAll(rows, ttl); err != nil || len(rows) == 0 {
		return err
	}
	c, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer c.end()
	expires := expiryOf(p.now().Truncate(time.Microsecond), ttl)
	named := map[string]write{} // of a key that is named twice the last
	for _, row := range rows {
		named[row.Key] = write{value: clone(row.Value), expires: expires}
	}
	var all puts
	for _, key := range slices.Sorted(maps.Keys(named)) { // in which no two wait for each other
		all.add(key, named[key])
	}
	_, err = c.exec(putMany, all.keys, all.values, all.expires)
	return err
}

// Sweep deletes up to limit expired keys, oldest first, in one statement, and
// what connections of days ago left behind. It looks at the database's clock before,
// and deletes nothing where that has jumped, until the next sweep finds it still there.
// Processes that sweep at the same time share the work.
func (p *pgStore) Sweep(ctx context.Context, limit int) (int, error) {
	if err := checkLimit(limit); err != nil {
		return 0, err
	}
	c, err := p.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer c.end()
	if answered := p.clock.ask(ctx, p.pool) == nil; !p.clock.maySweep(answered) {
		return 0, nil
	}
	// The outer condition is looked at again, in the row as it has become, when
	// somebody puts the key anew meanwhile.
	n, err := c.exec(`delete from kv where expires <= $1 and key in
		(select key from kv where expires <= $1 order by expires limit $2)`, p.now(), limit)
	if err != nil {
		return 0, err
	}
	_, err = c.exec(`delete from kv_writer where seen < now() - interval '1 day'`)
	return n, err
}

// Close takes no further calls, waits for those under way, which stop trying
// again, and closes the connections. Further calls do nothing.
func (p *pgStore) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	close(p.closing)
	p.mu.Unlock()
	p.running.Wait()
	p.pool.Close()
	return nil
}

// Connections says how many connections this process has that are in use and
// that are not, and how many it may have.
func (p *pgStore) Connections() (busy, idle, most int) {
	s := p.pool.Stat()
	return int(s.AcquiredConns()), int(s.IdleConns()), p.gate.most()
}

// Queue is for whoever watches how the store does.
func (p *pgStore) Queue() Queue { return p.gate.stats() }

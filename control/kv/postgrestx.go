package kv

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	beginUpdate = "begin isolation level serializable"
	// lockWriters comes before the first read, so before the snapshot: earlier
	// writers have finished, and later ones wait until this one has.
	lockWriters = "lock table kv in exclusive mode"
	beginView   = "begin isolation level repeatable read read only"

	// Both bounds of a scan are always there, so that there is one statement
	// with one plan; endOfKeys stands in where there is no upper one.
	selectOne  = "select key, value from kv where key = $1 and (expires is null or expires > $2)"
	selectAll  = "select key, value from kv where key = any($1) and (expires is null or expires > $2)"
	selectMany = `select key, value from kv where key >= $1 and key > $2 and key < $3
		and (expires is null or expires > $4) order by key limit $5`
	// selectRows reads all that Rows names. The limits keep each part a look into the
	// index for each row outside it, whatever the planner believes of the table.
	selectRows = `select key, value from kv where key = any($1) and (expires is null or expires > $2)
		union all
		select k.key, k.value from unnest($3::bytea[], $4::bytea[]) as p (low, high)
			cross join lateral (select key, value from kv where key >= p.low and key < p.high
				and (expires is null or expires > $2) order by key limit 1000000) as k
		union all
		select k.key, k.value from unnest($8::bytea[], $9::bytea[]) as f (low, high)
			cross join lateral (select key, value from kv where key >= f.low and key < f.high
				and (expires is null or expires > $2) order by key limit 1) as k
		union all
		select k.key, k.value from unnest($5::bytea[], $6::bytea[], $7::bytea[]) as i (low, high, place)
			cross join lateral (select key from kv where key >= i.low and key < i.high
				and (expires is null or expires > $2) order by key limit 1000000) as named
			cross join lateral (select key, value from kv where key = i.place || substring(named.key from octet_length(i.low) + 1)
				and (expires is null or expires > $2) limit 1) as k`
	putOne = `insert into kv (key, value, expires) values ($1, $2, $3)
		on conflict (key) do update set value = excluded.value, expires = excluded.expires`
	putMany = `insert into kv (key, value, expires) select * from unnest($1::bytea[], $2::bytea[], $3::timestamptz[])
		on conflict (key) do update set value = excluded.value, expires = excluded.expires`
	deleteOne = "delete from kv where key = $1"
)

// From putsTogether on, writes that follow one another are one statement, up to putsBytes
// of keys and values: a statement for each of thousands costs more than the rows.
const (
	putsTogether = 8
	putsBytes    = 1 << 20
)

// endOfKeys sorts after every key there can be.
var endOfKeys = strings.Repeat("\xff", MaxKey+1)

// pgTx is one run of a function: its own writes over what the database holds.
type pgTx struct {
	call    *call
	begin   string        // the statement that begins it
	alone   bool          // nobody else writes meanwhile
	conn    *pgxpool.Conn // nil until the first read or the commit
	err     error         // the database's, which ends the run whatever fn makes of it
	overlay               // its now is in whole microseconds

	reads map[string][]byte // what was read; nil for what is absent. A snapshot does not change
	ahead bool              // some of it was read before fn asked
	asked []string          // keys, in a run that read ahead; in others all that was read
}

func (t *pgTx) Get(key string) ([]byte, error) {
	if value, decided, err := t.own(key); decided {
		return value, err
	}
	if key == "" || len(key) > MaxKey {
		return nil, ErrNotFound // never stored
	}
	t.note(key)
	value, ok := t.reads[key]
	if !ok {
		items, err := t.read(selectOne, []byte(key), t.now)
		if err != nil {
			return nil, err
		}
		if len(items) > 0 {
			value = items[0].Value
		}
		t.remember(key, value)
	}
	if value == nil {
		return nil, ErrNotFound
	}
	return clone(value), nil
}

func (t *pgTx) remember(key string, value []byte) {
	if t.reads == nil {
		t.reads = make(map[string][]byte)
	}
	t.reads[key] = value
}

// readAhead reads what fn is going to ask for, as far as that is known.
func (t *pgTx) readAhead(keys []string) error {
	t.ahead = len(keys) > 0
	return t.fetch(keys)
}

// note keeps what fn asks for, for a run after this one.
func (t *pgTx) note(keys ...string) {
	if t.ahead {
		t.asked = append(t.asked, keys...)
	}
}

// wasAsked are keys that fn asked for, as many as can be read together: no others, because
// what is only read ahead is a reason to lose, too.
func (t *pgTx) wasAsked() []string {
	keys := t.asked
	if !t.ahead {
		keys = slices.Collect(maps.Keys(t.reads))
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	return keys[:min(len(keys), MaxKeys)]
}

// GetAll asks for what is not known yet in one statement.
func (t *pgTx) GetAll(keys ...string) ([][]byte, error) {
	if t.returned {
		return nil, errTxOver
	}
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	t.note(keys...)
	if err := t.fetch(keys); err != nil {
		return nil, err
	}
	return getEach(t, keys)
}

// fetch reads those of the keys that are not known yet.
func (t *pgTx) fetch(keys []string) error {
	var ask [][]byte
	for _, key := range keys {
		_, written := t.writes[key]
		_, known := t.reads[key]
		if !written && !known && key != "" && len(key) <= MaxKey {
			ask = append(ask, []byte(key))
		}
	}
	if len(ask) == 0 {
		return nil
	}
	items, err := t.read(selectAll, ask, t.now)
	if err != nil {
		return err
	}
	for _, key := range ask {
		t.remember(string(key), nil)
	}
	for _, item := range items {
		t.remember(item.Key, item.Value)
	}
	return nil
}

func (t *pgTx) Scan(prefix, after string, limit int) ([]Item, error) {
	if err := t.mayScan(limit); err != nil {
		return nil, err
	}
	own := t.under(prefix, after)
	// Each own key can hide one stored row, so that many more are asked for.
	stored, err := t.read(selectMany, []byte(prefix), []byte(after), []byte(endOf(prefix)), t.now, limit+len(own))
	if err != nil || len(own) == 0 {
		return stored, err
	}
	return t.merge(own, limit, func() (item Item, more bool, err error) {
		if len(stored) == 0 {
			return Item{}, false, nil
		}
		item, stored = stored[0], stored[1:]
		return item, true, nil
	})
}

// endOf is the first key that sorts after everything beginning with prefix.
func endOf(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return endOfKeys
}

// readRows reads what rows names, in a transaction of that one statement. The indexes
// themselves are prefixes like others.
func (c *call) readRows(rows Rows) ([]Item, error) {
	keys, low, high := [][]byte{}, [][]byte{}, [][]byte{}
	from, to, place := [][]byte{}, [][]byte{}, [][]byte{}
	first, past := [][]byte{}, [][]byte{}
	for _, key := range rows.Keys {
		if key != "" && len(key) <= MaxKey {
			keys = append(keys, []byte(key))
		}
	}
	for _, prefix := range rows.Prefixes {
		low, high = append(low, []byte(prefix)), append(high, []byte(endOf(prefix)))
	}
	for _, prefix := range rows.First {
		first, past = append(first, []byte(prefix)), append(past, []byte(endOf(prefix)))
	}
	for _, index := range rows.Indexes {
		prefix, end := []byte(index.Prefix), []byte(endOf(index.Prefix))
		low, high = append(low, prefix), append(high, end)
		from, to, place = append(from, prefix), append(to, end), append(place, []byte(index.Row))
	}
	now := c.p.now().Truncate(time.Microsecond)
	for {
		items, err := c.query(selectRows, keys, now, low, high, from, to, place, first, past)
		if err == nil {
			return items, nil
		}
		if err := c.again(err); err != nil {
			return nil, err
		}
	}
}

// query is one statement on a connection of its own. Once it is sent it is waited for,
// for as long as a commit is, because breaking it off would cost the connection, which
// takes many round trips to make anew, just when the database has most to do. When
// whoever asked has gone it gets connectTimeout more.
func (c *call) query(sql string, args ...any) ([]Item, error) {
	conn, err := c.acquire(c.ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), commitWait)
	defer cancel()
	defer context.AfterFunc(c.ctx, func() { time.AfterFunc(connectTimeout, cancel) })()
	items, err := func() ([]Item, error) {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		return collect(rows)
	}()
	c.discard(conn, err)
	return items, err
}

// read runs one of the selects. The first of a transaction begins it, and
// is tried again on another connection when that one turns out to be dead:
// nothing has been seen yet.
func (t *pgTx) read(sql string, args ...any) ([]Item, error) {
	if t.err != nil {
		return nil, t.err
	}
	if t.conn != nil {
		rows, err := t.conn.Query(t.call.ctx, sql, args...)
		if err != nil {
			return nil, t.fail(err)
		}
		items, err := collect(rows)
		if err != nil {
			return nil, t.fail(err)
		}
		return items, nil
	}
	for {
		items, err := t.first(sql, args...)
		if err == nil {
			return items, nil
		}
		t.call.discard(t.conn, err)
		t.conn = nil
		if t.cannotLock(err) {
			t.alone = false
			continue
		}
		if err := t.call.again(err); err != nil {
			return nil, t.fail(err)
		}
	}
}

func (t *pgTx) first(sql string, args ...any) ([]Item, error) {
	var err error
	if t.conn, err = t.call.acquire(t.call.ctx); err != nil {
		return nil, err
	}
	batch := &pgx.Batch{}
	t.queueBegin(batch)
	begun := batch.Len()
	batch.Queue(sql, args...)
	results := t.conn.SendBatch(t.call.ctx, batch)
	items, err := func() ([]Item, error) {
		for range begun {
			if _, err := results.Exec(); err != nil {
				return nil, err
			}
		}
		rows, err := results.Query()
		if err != nil {
			return nil, err
		}
		return collect(rows)
	}()
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return items, err
}

func (t *pgTx) queueBegin(batch *pgx.Batch) {
	batch.Queue(t.begin)
	if t.alone {
		batch.Queue(lockWriters)
	}
}

func collect(rows pgx.Rows) ([]Item, error) {
	defer rows.Close()
	var items []Item
	for rows.Next() {
		var key, value []byte
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		items = append(items, Item{Key: string(key), Value: value})
	}
	return items, rows.Err()
}

func (t *pgTx) fail(err error) error {
	t.err = err
	return err
}

// queue puts the writes, in key order so that neighbours seldom deadlock, and
// what makes them last, into a batch.
func (t *pgTx) queue(batch *pgx.Batch) {
	var puts puts
	for _, key := range t.under("", "") {
		w := t.writes[key]
		if w.deleted || puts.bytes >= putsBytes {
			puts.queue(batch)
		}
		if w.deleted {
			batch.Queue(deleteOne, []byte(key))
		} else {
			puts.add(key, w)
		}
	}
	puts.queue(batch)
}

// puts are writes that follow one another.
type puts struct {
	keys, values [][]byte
	expires      []*time.Time
	bytes        int
}

func (p *puts) add(key string, w write) {
	p.keys, p.values, p.expires = append(p.keys, []byte(key)), append(p.values, w.value), append(p.expires, upToMicro(w.expires))
	p.bytes += len(key) + len(w.value)
}

// queue puts them into a batch, and forgets them.
func (p *puts) queue(batch *pgx.Batch) {
	if len(p.keys) < putsTogether {
		for i, key := range p.keys {
			batch.Queue(putOne, key, p.values[i], p.expires[i])
		}
	} else {
		batch.Queue(putMany, p.keys, p.values, p.expires)
	}
	*p = puts{}
}

// upToMicro is a time as the database keeps it, in whole microseconds: never
// earlier, because less than one must not be none. It is nil for never.
func upToMicro(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	return &at
}

// end gives the connection back, rolling back what is not committed.
func (t *pgTx) end() {
	t.returned = true
	if t.conn == nil {
		return
	}
	if t.conn.Conn().PgConn().TxStatus() != 'I' && !t.conn.Conn().IsClosed() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.call.ctx), connectTimeout)
		defer cancel()
		// A connection on which this fails is not idle, and is closed below.
		_, _ = t.conn.Exec(ctx, "rollback")
	}
	t.conn.Release()
	t.conn = nil
}

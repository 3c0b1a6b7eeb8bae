package kv

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// writerData is the key of a connection's writer among its custom data.
const writerData = "porchlight/kv.writer"

// writerRow is the row of kv_writer that a connection owns.
type writerRow struct {
	id   []byte
	last int64 // number of the last transaction sent; whoever holds the connection owns it
}

const (
	// numberWriter fails, and with it the transaction, when the row was closed:
	// last may not be null.
	numberWriter = `insert into kv_writer (id, last) values ($1, $2) on conflict (id) do update
		set last = case when kv_writer.ended then null else excluded.last end, seen = now()`
	// closeWriter waits for a transaction under way that holds the row.
	closeWriter = `insert into kv_writer (id, last, ended) values ($1, 0, true)
		on conflict (id) do update set ended = true, seen = now() returning last`
)

// commit sends the writes and COMMIT in one round trip and sees to it that the
// outcome is known. A nil error is a commit; any other means that nothing was
// kept, except ErrOutcomeUnknown.
func (c *call) commit(t *pgTx) error {
	batch := &pgx.Batch{}
	if t.conn == nil {
		if len(t.writes) == 0 {
			return nil // neither read nor written
		}
		var err error
		if t.conn, err = c.acquire(c.ctx); err != nil {
			return err
		}
		t.queueBegin(batch)
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	w := t.conn.Conn().PgConn().CustomData()[writerData].(*writerRow)
	if len(t.writes) > 0 {
		w.last++
		batch.Queue(numberWriter, w.id, w.last)
		t.queue(batch)
	}
	batch.Queue("commit")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), commitWait)
	defer cancel()
	done, err := send(ctx, t.conn, batch)
	if done {
		return nil
	}
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok && pe.SeverityUnlocalized == "ERROR" && pe.Code != codeUnknown {
		if troubleOf(err) == away {
			c.discard(t.conn, err)
			t.conn = nil
		}
		return err // and so nothing was committed
	}
	c.discard(t.conn, err)
	t.conn = nil
	if len(t.writes) == 0 || pgconn.SafeToRetry(err) {
		return err
	}
	return c.resolve(*w, err)
}

// send runs a batch that ends in "commit" and reports whether that was carried
// out.
func send(ctx context.Context, conn *pgxpool.Conn, batch *pgx.Batch) (committed bool, err error) {
	results := conn.SendBatch(ctx, batch)
	var tag pgconn.CommandTag
	for range batch.Len() {
		if tag, err = results.Exec(); err != nil {
			break
		}
	}
	closeErr := results.Close()
	if err == nil && tag.String() == "COMMIT" {
		return true, nil // whatever became of the connection afterwards
	}
	if err == nil {
		err = closeErr
	}
	if err == nil {
		err = fmt.Errorf("commit was answered by %q", tag)
	}
	return false, err
}

// resolve finds out what became of the last transaction of w, whose connection
// broke with cause: nil when it was committed, cause when it was not and never
// will be, and ErrOutcomeUnknown when nobody can be asked.
func (c *call) resolve(w writerRow, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), commitWait)
	defer cancel()
	ask := call{p: c.p, ctx: ctx}
	for {
		var last int64
		err := c.p.pool.QueryRow(ctx, closeWriter, w.id).Scan(&last)
		switch {
		case err == nil && last == w.last:
			return nil
		case err == nil:
			return cause
		}
		if err := ask.again(err); err != nil {
			return &endedError{fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)}
		}
	}
}

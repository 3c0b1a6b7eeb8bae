package kv

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errTxOver is what a transaction answers that was kept after its function
// returned.
var errTxOver = errors.New("kv: the transaction is over")

// checkPut holds what every store refuses to store.
func checkPut(key string, value []byte, ttl time.Duration) error {
	switch {
	case key == "":
		return errors.New("kv: the empty key cannot be stored")
	case len(key) > MaxKey:
		return fmt.Errorf("kv: a key of %d bytes is too long (at most %d)", len(key), MaxKey)
	case len(value) > MaxValue:
		return fmt.Errorf("kv: a value of %d bytes is too large (at most %d)", len(value), MaxValue)
	case ttl < 0:
		return fmt.Errorf("kv: a negative time to live (%v)", ttl)
	}
	return nil
}

// A deadline that is far away is moved to the end of its hour, so that a value
// put again and again, each time to live as long, mostly keeps its deadline. The
// index of deadlines is then left alone, and in PostgreSQL so is the one of keys.
const (
	farAway   = 24 * time.Hour
	roundedTo = time.Hour
)

// expiryOf is when a value put at now expires. It is the zero time for a ttl
// of zero.
func expiryOf(now time.Time, ttl time.Duration) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	deadline := now.Add(ttl)
	if ttl >= farAway {
		if whole := deadline.Truncate(roundedTo); whole.Before(deadline) {
			deadline = whole.Add(roundedTo)
		}
	}
	return deadline
}

// checkKeys refuses a GetAll of more than one round trip should carry.
func checkKeys(keys []string) error {
	if len(keys) > MaxKeys {
		return fmt.Errorf("kv: %d keys at once are too many (at most %d)", len(keys), MaxKeys)
	}
	return nil
}

// checkAll is checkPut for rows that are put together.
func checkAll(rows []Item, ttl time.Duration) error {
	if len(rows) > MaxRows {
		return fmt.Errorf("kv: %d rows at once are too many (at most %d)", len(rows), MaxRows)
	}
	for _, row := range rows {
		if err := checkPut(row.Key, row.Value, ttl); err != nil {
			return err
		}
	}
	return nil
}

// checkLimit refuses a Scan or Sweep without a bound: both would otherwise be
// mistaken for "everything" or "nothing" depending on the reader.
func checkLimit(limit int) error {
	if limit <= 0 {
		return fmt.Errorf("kv: a limit must be above zero, not %d", limit)
	}
	return nil
}

// checked passes on what next returns, as long as a store may hold it.
func checked(ctx context.Context, next func() (Record, error)) func() (Record, error) {
	last := ""
	return func() (Record, error) {
		if err := ctx.Err(); err != nil {
			return Record{}, err
		}
		r, err := next()
		if err != nil {
			return Record{}, err
		}
		if err := checkPut(r.Key, r.Value, 0); err != nil {
			return Record{}, err
		}
		if r.Key <= last {
			return Record{}, fmt.Errorf("kv: the key %q comes after %q", r.Key, last)
		}
		last = r.Key
		if r.Key == versionKey {
			_, err = versionIn(r.Value, len(migrations))
		}
		return r, err
	}
}

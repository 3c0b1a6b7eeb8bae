package kv

import (
	"errors"
	"fmt"
	"time"
)

// errTxOver is what a transaction answers that was kept after its function
// returned.
var errTxOver = errors.New("kv: the transaction is over")

// checkPut holds what every engine refuses to store.
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

// checkLimit refuses a Scan or Sweep without a bound: both would otherwise be
// mistaken for "everything" or "nothing" depending on the reader.
func checkLimit(limit int) error {
	if limit <= 0 {
		return fmt.Errorf("kv: a limit must be above zero, not %d", limit)
	}
	return nil
}

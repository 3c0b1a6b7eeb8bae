package mail

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"porchlight/control/kv"
)

// newest is a bounded list in the store, newest first, which is how people read
// it: its keys are PREFIX TIME-ID, where TIME falls as time goes on.
type newest[T any] struct {
	prefix string
	size   int           // rows kept
	life   time.Duration // of each
}

// put adds a row and drops the oldest one when there are too many.
func (l newest[T]) put(tx kv.Tx, id string, at time.Time, row T) error {
	key := fmt.Sprintf("%s%016x-%s", l.prefix, uint64(math.MaxInt64-at.UnixNano()), id)
	if err := kv.PutJSON(tx, key, row, l.life); err != nil {
		return err
	}
	kept, err := tx.Scan(l.prefix, "", l.size+1)
	if err != nil || len(kept) <= l.size {
		return err
	}
	return tx.Delete(kept[l.size].Key)
}

// list reads up to limit rows; it is never nil.
func (l newest[T]) list(tx kv.Tx, limit int) ([]T, error) {
	out := []T{}
	items, err := tx.Scan(l.prefix, "", min(limit, l.size))
	for _, it := range items {
		var row T
		if err := json.Unmarshal(it.Value, &row); err != nil {
			return nil, fmt.Errorf("decoding %T: %w", row, err)
		}
		out = append(out, row)
	}
	return out, err
}

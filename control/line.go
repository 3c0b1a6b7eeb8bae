package control

import (
	"context"

	"porchlight/control/kv"
)

// loadLine reads the line of changes, making one where there is none.
func (s *core) loadLine(ctx context.Context) (string, error) {
	made := newID()
	return updated(ctx, s, func(tx *txn) (string, error) {
		line, found := get[string](tx, keyLine)
		if !found {
			line = made
			tx.put(keyLine, made, 0)
		}
		return line, nil
	})
}

// BeginLine has the changes counted in another line from now on: agents then believe what
// is in the store though they were told newer. The other nodes follow at their next look.
func (s *Computers) BeginLine(ctx context.Context) error {
	line := newID()
	err := s.update(ctx, func(tx *txn) error { tx.put(keyLine, line, 0); return nil })
	if err == nil {
		s.line.Store(&line)
	}
	return err
}

// EndLine has the changes in a store counted in another line from the next start on,
// because it was filled from a backup: agents have seen higher numbers, and are to
// believe the lower ones.
func EndLine(ctx context.Context, store kv.Store) error {
	return store.Update(ctx, func(tx kv.Tx) error { return tx.Delete(keyLine) })
}

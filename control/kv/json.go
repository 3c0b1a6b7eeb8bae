package kv

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// PutJSON is Put for a value that is stored as JSON.
func PutJSON(tx Tx, key string, value any, ttl time.Duration) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %T: %w", value, err)
	}
	return tx.Put(key, b, ttl)
}

// GetJSON reads the row at key; found is false where there is none.
func GetJSON[T any](tx Tx, key string) (value T, found bool, err error) {
	b, err := tx.Get(key)
	if errors.Is(err, ErrNotFound) {
		return value, false, nil
	}
	if err == nil {
		value, err = ParseJSON[T](b)
	}
	return value, err == nil, err
}

// EachJSON calls fn for the rows under prefix in key order, with what follows the prefix.
// fn may change the store.
func EachJSON[T any](tx Tx, prefix string, fn func(rest string, row T) error) error {
	return Each(tx, prefix, func(rest string, b []byte) error {
		row, err := ParseJSON[T](b)
		if err != nil {
			return err
		}
		return fn(rest, row)
	})
}

// Each is EachJSON for rows as they are.
func Each(tx Tx, prefix string, fn func(rest string, value []byte) error) error {
	const batch = 256
	after := ""
	for {
		items, err := tx.Scan(prefix, after, batch)
		if err != nil {
			return err
		}
		for _, it := range items {
			if err := fn(it.Key[len(prefix):], it.Value); err != nil {
				return err
			}
			after = it.Key
		}
		if len(items) < batch {
			return nil
		}
	}
}

// ParseJSON reads a value that PutJSON stored.
func ParseJSON[T any](b []byte) (value T, err error) {
	if err := json.Unmarshal(b, &value); err != nil {
		return value, fmt.Errorf("decoding %T: %w", value, err)
	}
	return value, nil
}

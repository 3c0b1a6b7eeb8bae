package controlapi

import "time"

// Keys that sign are kept newest first, at least one. Each is published for a while before
// it signs, and for a while after a newer one does.

// SigningKey is the newest of keys that signs by now; from is since when one does.
func SigningKey[K any](keys []K, from func(K) time.Time, now time.Time) K {
	for _, k := range keys {
		if !now.Before(from(k)) {
			return k
		}
	}
	return keys[len(keys)-1]
}

// VerifyingKeys are all of keys but those that a newer one has replaced for longer than after.
func VerifyingKeys[K any](keys []K, from func(K) time.Time, after time.Duration, now time.Time) []K {
	for i := 1; i < len(keys); i++ {
		if !now.Before(from(keys[i-1]).Add(after)) {
			return keys[:i]
		}
	}
	return keys
}

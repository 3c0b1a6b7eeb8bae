package store

import (
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"porchlight/control/controlapi"
)

var clientsKey = []byte("clients")

// Clients are what people let remote clients in with, as the owner was last told of it.
type Clients struct {
	Computer string             `json:"computer"` // id of this computer at its control plane
	Grants   []controlapi.Grant `json:"grants"`
}

// SaveClients replaces them.
func (s *Store) SaveClients(c Clients) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode the remote clients: %w", err)
	}
	return s.update(func(tx *bolt.Tx) error { return tx.Bucket(snapshotBucket).Put(clientsKey, raw) })
}

// Clients returns them; of no computer where none were kept yet.
func (s *Store) Clients() (c Clients, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		raw := tx.Bucket(snapshotBucket).Get(clientsKey)
		if raw == nil {
			return nil
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			return fmt.Errorf("the kept remote clients are damaged: %w", err)
		}
		return nil
	})
	return c, err
}

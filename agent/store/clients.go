package store

import "porchlight/control/controlapi"

var clientsKey = []byte("clients")

// Clients are what people let remote clients in with, as the owner was last told of it.
type Clients struct {
	Computer string             `json:"computer"` // id of this computer at its control plane
	Grants   []controlapi.Grant `json:"grants"`
}

// SaveClients replaces them.
func (s *Store) SaveClients(c Clients) error { return s.save(snapshotBucket, clientsKey, c) }

// Clients returns them; of no computer where none were kept yet.
func (s *Store) Clients() (c Clients, err error) {
	_, err = s.load(snapshotBucket, clientsKey, "the record of the remote clients", &c)
	return c, err
}

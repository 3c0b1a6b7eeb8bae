package store

import (
	"time"

	"porchlight/control/controlapi"
)

var (
	clientsKey = []byte("clients")
	callsKey   = []byte("calls")
)

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

// Calls are what was asked of the apps by one grant.
type Calls struct {
	Last  time.Time `json:"last"`
	Today int       `json:"today"` // on the day of Last, local time
}

// SaveCalls replaces those of all grants, by id.
func (s *Store) SaveCalls(c map[string]Calls) error { return s.save(snapshotBucket, callsKey, c) }

// Calls returns them.
func (s *Store) Calls() (c map[string]Calls, err error) {
	_, err = s.load(snapshotBucket, callsKey, "the count of calls", &c)
	return c, err
}

package store

import (
	"fmt"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
)

var usersBucket = []byte("users") // the system's id of a user → agentapi.LocalUser

// Users returns the other users of this computer that asked to be let in, or were
// answered, by the system's id.
func (s *Store) Users() (map[string]agentapi.LocalUser, error) {
	users := map[string]agentapi.LocalUser{}
	err := s.view(func(tx *boltfile.Tx) error { return getNamed(tx.Bucket(usersBucket), users) })
	if err != nil {
		return nil, fmt.Errorf("read the users of this computer: %w", err)
	}
	return users, nil
}

// PutUser keeps how it stands with a user; nil forgets them.
func (s *Store) PutUser(id string, user *agentapi.LocalUser) error {
	return s.update(func(tx *boltfile.Tx) error { return putOrDelete(tx.Bucket(usersBucket), id, user) })
}

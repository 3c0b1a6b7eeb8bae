package control

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// OwnedComputer is a computer as the operator sees it.
type OwnedComputer struct {
	controlapi.Computer
	Owner     string    `json:"owner"` // e-mail address
	CreatedAt time.Time `json:"createdAt"`
}

// Accounts are all accounts, in no order that means anything.
func (s *Accounts) List(ctx context.Context) ([]Account, error) {
	var out []Account
	err := s.store.View(ctx, func(tx kv.Tx) error {
		out = []Account{}
		return each(tx, keyAccount(""), func(id string, value []byte) error {
			var a Account
			if err := json.Unmarshal(value, &a); err != nil {
				return fmt.Errorf("decoding the account %s: %w", id, err)
			}
			out = append(out, a)
			return nil
		})
	})
	return out, err
}

// Computers are all computers, in no order that means anything.
func (s *Computers) List(ctx context.Context) ([]OwnedComputer, error) {
	var out []OwnedComputer
	err := s.store.View(ctx, func(tx kv.Tx) error {
		out = []OwnedComputer{}
		return each(tx, keyComputer(""), func(id string, value []byte) error {
			var c computer
			if err := json.Unmarshal(value, &c); err != nil {
				return fmt.Errorf("decoding the computer %s: %w", id, err)
			}
			owned, err := s.owned(tx, c)
			out = append(out, owned)
			return err
		})
	})
	return out, err
}

func (s *Computers) owned(tx kv.Tx, c computer) (OwnedComputer, error) {
	owner, _, err := get[Account](tx, keyAccount(c.OwnerID))
	return OwnedComputer{Computer: s.computer(c), Owner: owner.Email, CreatedAt: c.CreatedAt}, err
}

package control

import (
	"context"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// People are those who may reach a computer: its owner, and whom the owner
// invited.
type People struct{ *core }

// List lists everybody with a row on a computer, removed ones included, in the
// order of their account ids.
func (s *People) List(ctx context.Context, computerID string) ([]controlapi.Person, error) {
	return viewed(ctx, s.core, func(tx kv.Tx) ([]controlapi.Person, error) {
		out := []controlapi.Person{}
		err := eachPerson(tx, computerID, func(p person) error {
			out = append(out, p.wire(s.now()))
			return nil
		})
		return out, err
	})
}

// eachPerson calls fn for everybody with a row on a computer.
func eachPerson(tx kv.Tx, computerID string, fn func(person) error) error {
	return eachValue(tx, keyPersons(computerID), func(_ string, p person) error { return fn(p) })
}

// Give gives a person one app this computer has approved, until what
// controlapi.SetAccess.Until says.
func (s *People) Give(ctx context.Context, computerID, accountID, appID, end string) (controlapi.Person, error) {
	u, err := parseUntil(end, s.now())
	if err != nil {
		return controlapi.Person{}, err
	}
	return s.change(ctx, computerID, accountID, personGiven, u, appID)
}

// GiveByProgram is Give for a program of the computer, which knows no end: an app has the
// one that the owner gave it, also where a program took it away before then.
func (s *People) GiveByProgram(ctx context.Context, computerID, accountID, appID string) (controlapi.Person, error) {
	return s.change(ctx, computerID, accountID, personGiven, byProgram, appID)
}

// Withdraw takes one app from a person; one they never had is no error.
func (s *People) Withdraw(ctx context.Context, computerID, accountID, appID string) (controlapi.Person, error) {
	return s.change(ctx, computerID, accountID, personWithdrawn, until{keep: true}, appID)
}

// WithdrawByProgram is Withdraw for a program of the computer; see GiveByProgram.
func (s *People) WithdrawByProgram(ctx context.Context, computerID, accountID, appID string) (controlapi.Person, error) {
	return s.change(ctx, computerID, accountID, personWithdrawn, byProgram, appID)
}

// Remove ends a person's access to the whole computer, every session they have on it,
// and the invitations still open. The row stays, so that the owner sees that the
// removal happened.
func (s *People) Remove(ctx context.Context, computerID, accountID string) (controlapi.Person, error) {
	return s.change(ctx, computerID, accountID, personRemoved, until{keep: true})
}

// Undo is Remove for the owner who takes an invitation back: of somebody who was never on
// the list before and has not accepted it, no row stays.
func (s *People) Undo(ctx context.Context, computerID, accountID string) (controlapi.Person, error) {
	return s.change(ctx, computerID, accountID, personUndone, until{keep: true})
}

// RemoveByProgram is Remove for a program of the computer; see GiveByProgram.
func (s *People) RemoveByProgram(ctx context.Context, computerID, accountID string) (controlapi.Person, error) {
	return s.change(ctx, computerID, accountID, personRemoved, byProgram)
}

func (s *People) change(ctx context.Context, computerID, accountID string, ev personEvent, u until, apps ...string) (controlapi.Person, error) {
	return updated(ctx, s.core, func(tx *txn) (controlapi.Person, error) {
		if ev == personGiven {
			if err := tx.mayBeGiven(computerID, accountID, apps); err != nil {
				return controlapi.Person{}, err
			}
		}
		p, err := tx.changePerson(computerID, Account{ID: accountID}, ev, u, apps)
		if err == nil && ev == personGiven {
			err = tx.roomFor(computerID, p)
		}
		return p.wire(tx.now), err
	})
}

package control

import (
	"context"

	"porchlight/control/controlapi"
)

// People are those who may reach a computer: its owner, and whom the owner
// invited.
type People struct{ *core }

// List lists everybody with a row on a computer, removed ones included, in the
// order of their account ids.
func (s *People) List(ctx context.Context, computerID string) ([]controlapi.Person, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]controlapi.Person, error) {
		out := []controlapi.Person{}
		for _, p := range each[person](tx, keyPersons(computerID)) {
			out = append(out, p.wire(tx.now))
		}
		return out, nil
	})
}

// SetAccess gives a person one app this computer has approved, or takes it away; one that
// they never had is no error. A program knows no end: an app has the one that the owner gave
// it, also where a program took it away before then.
func (s *People) SetAccess(ctx context.Context, computerID string, a controlapi.SetAccess) (controlapi.Person, error) {
	ev, u := personWithdrawn, until{keep: true}
	if a.Granted {
		ev = personGiven
	}
	switch {
	case a.Program:
		u = byProgram
	case a.Granted:
		var err error
		if u, err = parseUntil(a.Until, s.now()); err != nil {
			return controlapi.Person{}, err
		}
	}
	return s.change(ctx, computerID, a.AccountID, ev, u, a.App)
}

// Remove ends a person's access to the whole computer, every session they have on it,
// and the invitations still open. The row stays, so that the owner sees that the
// removal happened. Only where the owner takes an invitation back (Undo), no row stays of
// somebody who was never on the list before and has not accepted it.
func (s *People) Remove(ctx context.Context, computerID string, r controlapi.Remove) (controlapi.Person, error) {
	switch {
	case r.Program:
		return s.change(ctx, computerID, r.AccountID, personRemoved, byProgram)
	case r.Undo:
		return s.change(ctx, computerID, r.AccountID, personUndone, until{keep: true})
	}
	return s.change(ctx, computerID, r.AccountID, personRemoved, until{keep: true})
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

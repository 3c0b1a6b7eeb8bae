package control

import (
	"context"
	"time"

	"porchlight/control/controlapi"
)

// Operator is an account with the role operator. Only the command line of the server gives it.
type Operator struct {
	ID    string    `json:"id"` // of the account
	Email string    `json:"email"`
	Since time.Time `json:"since"`
	// Passkey says that the account has one, without which nobody gets to /admin. Who has none
	// makes the first by a mail, so until then the mailbox is worth as much.
	Passkey bool `json:"passkey"`
}

// shown is o with what is not in its row.
func (o Operator) shown(t *txn) Operator {
	o.Passkey = t.hasPasskey(o.ID)
	return o
}

// Operators are the accounts with the role operator.
type Operators struct{ *core }

// Add gives the role to the account of an address, which is made where there is none.
// Repeated, it changes nothing.
func (s *Operators) Add(ctx context.Context, email string) (Operator, error) {
	email, err := ParseEmail(email)
	if err != nil {
		return Operator{}, err
	}
	id := newID()
	return updated(ctx, s.core, func(tx *txn) (Operator, error) {
		a := tx.ensureAccount(id, email)
		if o, found := get[Operator](tx, keyOperator(a.ID)); found {
			return o.shown(tx), nil
		}
		o := Operator{ID: a.ID, Email: a.Email, Since: tx.now.UTC()}
		tx.put(keyOperator(a.ID), o, 0)
		tx.note("operator-added", a.ID, "")
		return o.shown(tx), nil
	})
}

// Remove takes the role away; the account stays. It refuses with CodeNotFound.
func (s *Operators) Remove(ctx context.Context, email string) (Operator, error) {
	email, err := ParseEmail(email)
	if err != nil {
		return Operator{}, err
	}
	return updated(ctx, s.core, func(tx *txn) (Operator, error) {
		a, _ := accountByEmail(tx, email)
		o, err := find[Operator](tx, keyOperator(a.ID), refuse(controlapi.CodeNotFound, "There is no operator of that address."))
		tx.delete(keyOperator(a.ID))
		tx.note("operator-removed", a.ID, "")
		return o, err
	})
}

// List lists the operators.
func (s *Operators) List(ctx context.Context) ([]Operator, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]Operator, error) {
		all := rows[Operator](tx, keyOperator(""))
		for i := range all {
			all[i] = all[i].shown(tx)
		}
		return all, nil
	})
}

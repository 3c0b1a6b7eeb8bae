package control

import (
	"context"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// RemoveAccount takes an account away with everything it has: its computers and
// everybody's access to them, what others shared with it, the apps it let in, and
// its sessions. Whoever is invited at the address again gets another account. It
// refuses with CodeNotFound. Interrupted, it leaves the account, and goes on when
// it is called again.
func (s *Accounts) Remove(ctx context.Context, email string) error {
	account, err := s.ByEmail(ctx, email)
	if err != nil {
		return err
	}
	memberships, err := s.people.Memberships(ctx, account.ID)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		if m.Role == controlapi.RoleOwner {
			err = s.computers.Remove(ctx, account.ID, m.Computer.Name)
		} else {
			err = s.people.Leave(ctx, account.ID, m.Computer.Name)
		}
		if err != nil && !IsRefusal(err, controlapi.CodeNotFound) { // gone meanwhile
			return err
		}
	}
	if err := s.sessions.SignOutEverywhere(ctx, account.ID); err != nil {
		return err
	}
	return s.update(ctx, func(tx *txn) error {
		err := each(tx, keyMemberships(account.ID), func(computerID string, _ []byte) error {
			return notOwned(tx, computerID, account.ID)
		})
		if err != nil {
			return err
		}
		err = eachGrant(tx, keyAccountGrants(account.ID), func(g grant) error { return tx.revokeGrant(g.ID) })
		if err != nil {
			return err
		}
		err = each(tx, keyAccountSessions(account.ID), func(hash string, _ []byte) error { return tx.endSession(hash) })
		if err != nil {
			return err
		}
		if err := tx.Delete(keyAccountEmail(account.Email)); err != nil {
			return err
		}
		return tx.Delete(keyAccount(account.ID))
	})
}

// notOwned refuses when the account owns the computer: it was connected while the
// others were removed.
func notOwned(tx kv.Tx, computerID, accountID string) error {
	c, found, err := get[computer](tx, keyComputer(computerID))
	if err == nil && found && c.OwnerID == accountID {
		return refuse(controlapi.CodeInvalid, "A computer of this account was connected at the same moment. Try again.")
	}
	return err
}

package control

import (
	"context"
	"slices"

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

// changePerson applies an event to a row, with the end that the apps are to have,
// and stores it. The account needs its Email only where a row may be made.
func (t *txn) changePerson(computerID string, account Account, ev personEvent, u until, apps []string) (person, error) {
	before, found := get[person](t, keyPerson(computerID, account.ID))
	if !found {
		before = person{AccountID: account.ID, Email: account.Email, Suspended: account.Suspended}
	}
	now := before.asOf(t.now)
	p, err := now.next(ev, apps, t.now)
	if err != nil {
		return person{}, err
	}
	t.endWith(ev, computerID, account.ID, apps)
	if ev == personInvited && before.Status == controlapi.PersonRemoved {
		t.endInvited(computerID, account.ID)
	}
	t.hearAgain(ev, u, computerID, account.ID)
	t.startAnew(ev, computerID, now, apps)
	p = p.ending(apps, u).keptFrom(now, ev, apps, u, t.now)
	if ev == personInvited {
		p.Provided = t.provided(account.ID)
	}
	if ev == personUndone && before.New {
		t.deletePerson(computerID, before)
		t.touch(computerID)
	} else {
		t.putPerson(computerID, before, p)
	}
	return p, nil
}

// endWith ends what does not outlive an event of a person.
func (t *txn) endWith(ev personEvent, computerID, accountID string, apps []string) {
	switch ev {
	case personInvited, personGiven:
		t.answerKnocks(computerID, accountID, apps)
	case personWithdrawn:
		for _, id := range apps {
			t.delete(keyKnockOffers(computerID) + knockRest(accountID, id))
		}
		t.endPasswords(computerID, keyPersonPasswords(computerID, accountID), func(row appPassword) bool {
			return slices.Contains(apps, row.AppID)
		})
	case personRemoved, personUndone:
		t.voidInvitations(computerID, accountID)
		t.endPersonsKnocks(computerID, accountID)
		t.endPersonsPasswords(computerID, accountID)
		t.revokePersonsGrants(computerID, accountID)
	}
}

// hearAgain has a person's knocks heard again whom the owner gives something: never was
// the owner's word, so that no program takes it back.
func (t *txn) hearAgain(ev personEvent, u until, computerID, accountID string) {
	if !u.program && (ev == personInvited || ev == personGiven) {
		t.delete(keyKnocksMuted(computerID) + accountID)
	}
}

// startAnew ends what apps that had ended for p left behind, when they are given again.
func (t *txn) startAnew(ev personEvent, computerID string, p person, apps []string) {
	if ev != personGiven && ev != personInvited {
		return
	}
	again := slices.DeleteFunc(slices.Clone(apps), func(id string) bool { return p.Ended[id].IsZero() })
	if len(again) > 0 {
		t.endWith(personWithdrawn, computerID, p.AccountID, again)
	}
}

// forgetApps takes apps from everybody on a computer, with the passwords for them.
func (t *txn) forgetApps(computerID string, gone map[string]bool) {
	if len(gone) == 0 {
		return
	}
	t.endPasswords(computerID, keyPasswords(computerID), func(row appPassword) bool { return gone[row.AppID] })
	t.endAppsKnocks(computerID, gone)
	for g := range eachGrant(t, keyComputerGrants(computerID)) {
		t.narrow(g, withoutApps(g.Apps, func(id string) bool { return gone[id] }))
	}
	for _, p := range each[person](t, keyPersons(computerID)) {
		kept := p.without(func(id string) bool { return gone[id] })
		if kept.weight() != p.weight() {
			t.putPerson(computerID, p, kept)
		}
	}
}

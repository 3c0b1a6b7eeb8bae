package control

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"porchlight/control/controlapi"
)

// OfComputer lists the passwords of everybody for a computer, newest first.
func (s *Passwords) OfComputer(ctx context.Context, computerID string) ([]controlapi.PasswordInfo, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]controlapi.PasswordInfo, error) {
		people := map[string]person{}
		for accountID, p := range each[person](tx, keyPersons(computerID)) {
			people[accountID] = p.asOf(tx.now)
		}
		out := []controlapi.PasswordInfo{}
		for _, row := range each[appPassword](tx, keyPasswords(computerID)) {
			if p := people[row.AccountID]; p.Ended[row.AppID].IsZero() { // else it opens nothing, and goes with the share
				out = append(out, row.info(p.Email))
			}
		}
		newestFirst(out)
		return out, nil
	})
}

func newestFirst(list []controlapi.PasswordInfo) {
	slices.SortFunc(list, func(a, b controlapi.PasswordInfo) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// PasswordPlace is a computer where somebody may have app passwords.
type PasswordPlace struct {
	Computer controlapi.Computer
	Owner    string        // e-mail address, "" for one's own
	Apps     []PasswordApp // which the person may open, by label
}

// PasswordApp is one app with the person's passwords for it.
type PasswordApp struct {
	ID, Label, Host string
	Passwords       []controlapi.PasswordInfo // newest first
}

// Of lists what the person of a session may have passwords for, with those they
// have: on the computer named short, or on all of theirs, by name. It refuses a
// session that is not fresh with CodeUnauthorized.
func (s *Passwords) Of(ctx context.Context, session Session, short string) ([]PasswordPlace, error) {
	if err := s.mayManage(ctx, session); err != nil {
		return nil, err
	}
	return viewed(ctx, s.core, func(tx *txn) (out []PasswordPlace, err error) {
		for computerID := range below(tx, keyMemberships(session.Account.ID)) {
			p, _ := get[person](tx, keyPerson(computerID, session.Account.ID))
			if !p.mayOpen("") {
				continue
			}
			if c, found := get[computer](tx, keyComputer(computerID)); found && (short == "" || c.Name == short) {
				out = append(out, s.placeAt(tx, c, p.asOf(tx.now)))
			}
		}
		slices.SortFunc(out, func(a, b PasswordPlace) int { return strings.Compare(a.Computer.Name, b.Computer.Name) })
		return out, nil
	})
}

func (s *Passwords) placeAt(tx *txn, c computer, p person) PasswordPlace {
	place := PasswordPlace{Computer: s.computer(c)}
	if p.Role != controlapi.RoleOwner {
		owner, _ := get[Account](tx, keyAccount(c.OwnerID))
		place.Owner = owner.Email
	}
	of := map[string][]controlapi.PasswordInfo{} // by app
	for _, row := range each[appPassword](tx, keyPersonPasswords(c.ID, p.AccountID)) {
		of[row.AppID] = append(of[row.AppID], row.info(p.Email))
	}
	apps, _ := get[[]controlapi.App](tx, keyComputerApps(c.ID))
	for _, a := range apps {
		if p.mayOpen(a.ID) && !a.TCP { // no password opens those
			newestFirst(of[a.ID])
			place.Apps = append(place.Apps, PasswordApp{a.ID, a.Label, a.Name + "." + place.Computer.Host, of[a.ID]})
		}
	}
	slices.SortFunc(place.Apps, func(a, b PasswordApp) int {
		return cmp.Or(strings.Compare(a.Label, b.Label), strings.Compare(a.Host, b.Host))
	})
	return place
}

// Count is how many passwords an account has, on all computers.
func (s *Passwords) Count(ctx context.Context, accountID string) (int, error) {
	return viewed(ctx, s.core, func(tx *txn) (n int, err error) {
		for computerID := range below(tx, keyMemberships(accountID)) {
			n += len(rows[appPassword](tx, keyPersonPasswords(computerID, accountID)))
		}
		return n, nil
	})
}

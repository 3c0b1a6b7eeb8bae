package control

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// OfComputer lists the passwords of everybody for a computer, newest first.
func (s *Passwords) OfComputer(ctx context.Context, computerID string) ([]controlapi.PasswordInfo, error) {
	return viewed(ctx, s.core, func(tx kv.Tx) ([]controlapi.PasswordInfo, error) {
		people := map[string]person{}
		err := eachPerson(tx, computerID, func(p person) error { people[p.AccountID] = p.asOf(s.now()); return nil })
		if err != nil {
			return nil, err
		}
		out := []controlapi.PasswordInfo{}
		err = eachPassword(tx, keyPasswords(computerID), func(row appPassword) error {
			if p := people[row.AccountID]; p.Ended[row.AppID].IsZero() { // else it opens nothing, and goes with the share
				out = append(out, row.info(p.Email))
			}
			return nil
		})
		newestFirst(out)
		return out, err
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
	if err := s.mayManage(session); err != nil {
		return nil, err
	}
	return viewed(ctx, s.core, func(tx kv.Tx) (out []PasswordPlace, err error) {
		err = s.eachActive(tx, session.Account.ID, func(c computer, p person) error {
			if short != "" && c.Name != short {
				return nil
			}
			place, err := s.placeAt(tx, c, p)
			out = append(out, place)
			return err
		})
		slices.SortFunc(out, func(a, b PasswordPlace) int { return strings.Compare(a.Computer.Name, b.Computer.Name) })
		return out, err
	})
}

// eachActive calls fn for the computers somebody may open something on.
func (s *Passwords) eachActive(tx kv.Tx, accountID string, fn func(computer, person) error) error {
	return each(tx, keyMemberships(accountID), func(computerID string, _ []byte) error {
		p, found, err := get[person](tx, keyPerson(computerID, accountID))
		if err != nil || !found || !p.mayOpen("") {
			return err
		}
		c, found, err := get[computer](tx, keyComputer(computerID))
		if err != nil || !found {
			return err
		}
		return fn(c, p.asOf(s.now()))
	})
}

func (s *Passwords) placeAt(tx kv.Tx, c computer, p person) (PasswordPlace, error) {
	place := PasswordPlace{Computer: s.computer(c)}
	if p.Role != controlapi.RoleOwner {
		owner, _, err := get[Account](tx, keyAccount(c.OwnerID))
		if err != nil {
			return place, err
		}
		place.Owner = owner.Email
	}
	of := map[string][]controlapi.PasswordInfo{} // by app
	err := eachPassword(tx, keyPersonPasswords(c.ID, p.AccountID), func(row appPassword) error {
		of[row.AppID] = append(of[row.AppID], row.info(p.Email))
		return nil
	})
	if err != nil {
		return place, err
	}
	apps, _, err := get[[]controlapi.App](tx, keyComputerApps(c.ID))
	if err != nil {
		return place, err
	}
	for _, a := range apps {
		if p.mayOpen(a.ID) {
			newestFirst(of[a.ID])
			place.Apps = append(place.Apps, PasswordApp{a.ID, a.Label, a.Name + "." + place.Computer.Host, of[a.ID]})
		}
	}
	slices.SortFunc(place.Apps, func(a, b PasswordApp) int {
		return cmp.Or(strings.Compare(a.Label, b.Label), strings.Compare(a.Host, b.Host))
	})
	return place, nil
}

// Count is how many passwords an account has, on all computers.
func (s *Passwords) Count(ctx context.Context, accountID string) (int, error) {
	return viewed(ctx, s.core, func(tx kv.Tx) (n int, err error) {
		err = each(tx, keyMemberships(accountID), func(computerID string, _ []byte) error {
			return eachPassword(tx, keyPersonPasswords(computerID, accountID), func(appPassword) error { n++; return nil })
		})
		return n, err
	})
}

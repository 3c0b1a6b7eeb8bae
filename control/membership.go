package control

import (
	"context"
	"slices"
	"strings"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// Membership is one computer an account has to do with.
type Membership struct {
	Computer controlapi.Computer
	Role     controlapi.Role
	Status   controlapi.PersonStatus
	Owner    string // e-mail address
	// Apps are the live apps the person may open there now, by label.
	Apps []InvitedApp
	// Invited is whether somebody who has not accepted an invitation has an open one, From
	// what its owner calls themselves in it, and Invitation its path; that is empty of one
	// without a name, to which only its mail leads.
	Invited          bool
	Invitation, From string
}

// Memberships lists the computers an account has a row on, by name, removed ones
// left out.
func (s *People) Memberships(ctx context.Context, accountID string) ([]Membership, error) {
	return viewed(ctx, s.core, func(tx kv.Tx) (out []Membership, err error) {
		err = each(tx, keyMemberships(accountID), func(computerID string, _ []byte) error {
			p, found, err := get[person](tx, keyPerson(computerID, accountID))
			if err != nil || !found || p.Status == controlapi.PersonRemoved {
				return err
			}
			c, found, err := get[computer](tx, keyComputer(computerID))
			if err != nil || !found {
				return err
			}
			owner, _, err := get[Account](tx, keyAccount(c.OwnerID))
			if err != nil {
				return err
			}
			apps, _, err := get[[]controlapi.App](tx, keyComputerApps(c.ID))
			if err != nil {
				return err
			}
			p = p.asOf(s.now())
			m := Membership{Computer: s.computer(c), Role: p.Role, Status: p.Status, Owner: owner.Email}
			for _, a := range apps {
				if a.Live && p.mayOpen(a.ID) {
					m.Apps = append(m.Apps, InvitedApp{Label: a.Label, Host: a.Name + "." + m.Computer.Host, Until: p.Until[a.ID]})
				}
			}
			if m.Status == controlapi.PersonPending {
				hash, row, err := newestInvitation(tx, s.now(), computerID, accountID)
				if err != nil {
					return err
				}
				m.Invited, m.From = hash != "", row.From
				if row.Name != "" {
					m.Invitation = InvitationPath(row.Name)
				}
			}
			slices.SortFunc(m.Apps, func(a, b InvitedApp) int { return strings.Compare(a.Label, b.Label) })
			out = append(out, m)
			return nil
		})
		slices.SortFunc(out, func(a, b Membership) int { return strings.Compare(a.Computer.Name, b.Computer.Name) })
		return out, err
	})
}

// Choices are the memberships somebody may connect a client to, because they are
// active there: their own computers first, by name.
func (s *People) Choices(ctx context.Context, accountID string) ([]Membership, error) {
	all, err := s.Memberships(ctx, accountID)
	all = slices.DeleteFunc(all, func(m Membership) bool { return m.Status != controlapi.PersonActive })
	slices.SortStableFunc(all, func(a, b Membership) int {
		switch {
		case a.Role == b.Role:
			return 0
		case a.Role == controlapi.RoleOwner:
			return -1
		default:
			return 1
		}
	})
	return all, err
}

// Leave gives up what somebody was shared on a computer. The owner sees them as
// removed, and may invite them again. It refuses with CodeNotFound a computer
// that is not shared with them, and with CodeForbidden their own.
func (s *People) Leave(ctx context.Context, accountID, short string) error {
	return s.update(ctx, func(tx *txn) error {
		none := refuse(controlapi.CodeNotFound, "That computer is not shared with you any more.")
		c, err := findByName(tx, short, none)
		if err != nil {
			return err
		}
		p, err := find[person](tx, keyPerson(c.ID, accountID), none)
		if err != nil {
			return err
		}
		if p.Status == controlapi.PersonRemoved {
			return none
		}
		_, err = tx.changePerson(c.ID, Account{ID: accountID}, personRemoved, until{keep: true}, nil)
		return err
	})
}

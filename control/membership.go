package control

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
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
	// Ended is when the last of what they had there ended, where they have nothing now.
	Ended time.Time

	row  computer
	has  bool // an app
	seen time.Time
}

// Memberships lists the computers an account has a row on, by name, removed ones
// left out.
func (s *People) Memberships(ctx context.Context, accountID string) ([]Membership, error) {
	return viewed(ctx, s.core, func(tx *txn) (out []Membership, err error) {
		for computerID := range below(tx, keyMemberships(accountID)) {
			p, found := get[person](tx, keyPerson(computerID, accountID))
			if !found || p.Status == controlapi.PersonRemoved {
				continue
			}
			if c, found := get[computer](tx, keyComputer(computerID)); found {
				out = append(out, s.membership(tx, c, p.asOf(tx.now)))
			}
		}
		slices.SortFunc(out, func(a, b Membership) int { return strings.Compare(a.Computer.Name, b.Computer.Name) })
		return out, nil
	})
}

func (s *People) membership(tx *txn, c computer, p person) Membership {
	owner, _ := get[Account](tx, keyAccount(c.OwnerID))
	apps, _ := get[[]controlapi.App](tx, keyComputerApps(c.ID))
	m := Membership{Computer: s.computer(c), Role: p.Role, Status: p.Status, Owner: owner.Email, row: c}
	m.seen, _ = get[time.Time](tx, keyComputerSeen(c.ID))
	for _, a := range apps {
		m.has = m.has || p.mayOpen(a.ID)
		if a.Live && p.mayOpen(a.ID) {
			m.Apps = append(m.Apps, InvitedApp{ID: a.ID, Label: a.Label, Host: a.Name + "." + m.Computer.Host, Until: p.endOf(a.ID), TCP: a.TCP})
		}
	}
	slices.SortFunc(m.Apps, func(a, b InvitedApp) int { return strings.Compare(a.Label, b.Label) })
	if len(p.Apps)+len(p.ByGroup) == 0 && len(p.Ended) > 0 {
		m.Ended = slices.MaxFunc(slices.Collect(maps.Values(p.Ended)), time.Time.Compare)
	}
	if m.Status == controlapi.PersonPending {
		hash, row := newestInvitation(tx, c.ID, p.AccountID)
		m.Invited, m.From = hash != "", row.From
		if row.Name != "" {
			m.Invitation = InvitationPath(row.Name)
		}
	}
	return m
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
		p, found := get[person](tx, keyPerson(c.ID, accountID))
		if !found || p.Status == controlapi.PersonRemoved {
			return none
		}
		_, err = tx.changePerson(c.ID, Account{ID: accountID}, personRemoved, until{keep: true}, nil)
		return err
	})
}

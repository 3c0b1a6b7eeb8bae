package control

import (
	"slices"
	"time"

	"porchlight/control/controlapi"
)

const (
	// maxPeople is how many persons, removed ones included, one computer may
	// have.
	maxPeople = 1000
	// maxGiven is how many apps the persons of one computer may have been given,
	// counted once for each person, and once more where one ends. With maxPeople it
	// keeps a snapshot below what a controlapi.Client reads.
	maxGiven = 50_000
)

// person is one row of who may reach a computer.
type person struct {
	AccountID string                  `json:"accountId"`
	Email     string                  `json:"email"` // as the account's, which never changes
	Role      controlapi.Role         `json:"role"`
	Status    controlapi.PersonStatus `json:"status"`
	Apps      []string                `json:"apps"`               // app ids, sorted
	Until     map[string]time.Time    `json:"until,omitempty"`    // of Apps, those that end
	Ended     map[string]time.Time    `json:"ended,omitempty"`    // of apps that were among Apps until then
	Kept      map[string]time.Time    `json:"kept,omitempty"`     // ends of apps that a program took away, see keptFrom
	ByGroup   map[string]time.Time    `json:"byGroup,omitempty"`  // apps that the owner's groups open, with their ends, zero for none
	Provided  []string                `json:"provided,omitempty"` // groups that providers say they are in, as PROVIDER/GROUP
	Epoch     int64                   `json:"epoch"`
	InvitedAt time.Time               `json:"invitedAt"`
	ChangedAt time.Time               `json:"changedAt"` // of Status
	// New is true of somebody who was never on the list before, until their invitation is
	// accepted or taken back.
	New bool `json:"new,omitempty"`
	// Suspended is that of the account.
	Suspended time.Time `json:"suspended,omitzero"`
}

// personEvent is what can happen to a person's row.
type personEvent string

const (
	personInvited   personEvent = "invited"    // with the apps named
	personAccepted  personEvent = "accepted"   // the invitation's one click
	personGiven     personEvent = "given"      // one app given
	personWithdrawn personEvent = "withdrawn"  // one app taken away
	personRemoved   personEvent = "removed"    // the whole computer taken away
	personUndone    personEvent = "undone"     // removed, and not on the list where they are New
	personSignedOut personEvent = "signed out" // every session is to end
)

// next computes a person's row after an event (docs/interface.md, States of a
// person), and nothing else. The zero person is one who has no row.
func (p person) next(ev personEvent, apps []string, now time.Time) (person, error) {
	exists := p.Status != ""
	if !exists && ev != personInvited {
		return p, refuse(controlapi.CodeNotFound, "This person is not on the list.")
	}
	if p.Role == controlapi.RoleOwner && ev != personSignedOut {
		return p, refuse(controlapi.CodeForbidden, "This is the owner of the computer, who can open everything.")
	}
	become := func(status controlapi.PersonStatus) {
		if p.Status != status {
			p.Status, p.ChangedAt = status, now.UTC()
		}
	}
	switch ev {
	case personInvited:
		switch p.Status {
		case controlapi.PersonPending, controlapi.PersonActive:
			p = p.given(apps)
		default: // new, or removed before: only what this invitation names
			p.Role, p.InvitedAt = controlapi.RoleMember, now.UTC()
			p.Apps, p.Until, p.Ended, p.ByGroup = withApps(nil, apps), nil, nil, nil
			p.Epoch = laterEpoch(p.Epoch, now)
			become(controlapi.PersonPending)
			p.New = !exists
		}
	case personAccepted:
		if p.Status == controlapi.PersonRemoved {
			return p, refuse(controlapi.CodeForbidden, "This invitation was taken back.")
		}
		become(controlapi.PersonActive)
	case personGiven:
		p = p.given(apps)
	case personWithdrawn:
		p = p.without(func(id string) bool { return slices.Contains(apps, id) })
	case personRemoved, personUndone:
		if p.Status != controlapi.PersonRemoved {
			p.Epoch = laterEpoch(p.Epoch, now)
		}
		become(controlapi.PersonRemoved)
		p.ByGroup = nil
	case personSignedOut:
		p.Epoch = laterEpoch(p.Epoch, now)
	}
	p.New = p.New && p.Status == controlapi.PersonPending
	return p, nil
}

// given is the row with more apps; without is that with fewer, and their ends.
func (p person) given(apps []string) person {
	p.Apps, p.Ended = withApps(p.Apps, apps), dropped(p.Ended, func(id string) bool { return slices.Contains(apps, id) })
	return p
}

func (p person) without(gone func(id string) bool) person {
	p.Apps, p.Until, p.Ended = withoutApps(p.Apps, gone), dropped(p.Until, gone), dropped(p.Ended, gone)
	p.Kept, p.ByGroup = dropped(p.Kept, gone), dropped(p.ByGroup, gone)
	return p
}

// laterEpoch rises even for a row that was deleted and made again, so that no
// session from before the deletion comes back to life.
func laterEpoch(epoch int64, now time.Time) int64 { return max(epoch+1, now.UnixMilli()) }

func withApps(have, more []string) []string {
	all := append(slices.Clone(have), more...)
	slices.Sort(all)
	return slices.Compact(all)
}

func withoutApps(have []string, gone func(id string) bool) []string {
	return slices.DeleteFunc(slices.Clone(have), gone)
}

// mayOpen is the one rule of access on this side. The empty app is the
// launcher, which everybody active may see.
func (p person) mayOpen(appID string) bool {
	if p.Status != controlapi.PersonActive || !p.Suspended.IsZero() {
		return false
	}
	_, byGroup := p.ByGroup[appID]
	return appID == "" || p.Role == controlapi.RoleOwner || slices.Contains(p.Apps, appID) || byGroup
}

// endOf is when somebody can open an app no more, zero for never: a share and a group
// beside it open it until the later end.
func (p person) endOf(appID string) time.Time {
	end, byGroup := p.ByGroup[appID]
	switch own := p.Until[appID]; {
	case !byGroup:
		return own
	case !slices.Contains(p.Apps, appID):
		return end
	case own.IsZero() || end.IsZero():
		return time.Time{}
	case own.After(end):
		return own
	}
	return end
}

// wire is the row as agents are told of it at a moment.
func (p person) wire(now time.Time) controlapi.Person {
	p = p.asOf(now)
	apps := p.Apps
	if apps == nil {
		apps = []string{}
	}
	row := controlapi.Person{
		AccountID: p.AccountID, Email: p.Email, Role: p.Role, Status: p.Status, Apps: apps, Epoch: p.Epoch,
		Until: p.Until, Ended: p.Ended,
	}
	if p.Role != controlapi.RoleOwner {
		row.Since = p.InvitedAt
	}
	return row
}

// deletePerson deletes a row with its indexes.
func (t *txn) deletePerson(computerID string, p person) {
	t.indexEnds(computerID, p, person{})
	t.delete(keyMembership(p.AccountID, computerID), keyPerson(computerID, p.AccountID))
}

// putPerson stores a row that was before, zero where there was none.
func (t *txn) putPerson(computerID string, before, p person) {
	t.indexEnds(computerID, before, p)
	t.put(keyPerson(computerID, p.AccountID), p, 0)
	t.put(keyMembership(p.AccountID, computerID), struct{}{}, 0)
	t.touch(computerID)
}

func (t *txn) ensureOwner(computerID string, a Account) {
	if _, found := get[person](t, keyPerson(computerID, a.ID)); found {
		return
	}
	t.putPerson(computerID, person{}, person{
		AccountID: a.ID, Email: a.Email,
		Role: controlapi.RoleOwner, Status: controlapi.PersonActive,
		Epoch: laterEpoch(0, t.now), InvitedAt: t.now.UTC(), ChangedAt: t.now.UTC(), Suspended: a.Suspended,
	})
}

// mayBeGiven refuses apps that are not live, but for those that the person has, or had
// until lately: their end can be changed while they are off.
func (t *txn) mayBeGiven(computerID, accountID string, ids []string) error {
	p, _ := get[person](t, keyPerson(computerID, accountID))
	return t.liveApps(computerID, slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return slices.Contains(p.Apps, id) || !p.Ended[id].IsZero()
	}))
}

// liveApps refuses unless every id is an app the computer serves now.
func (t *txn) liveApps(computerID string, ids []string) error {
	apps, _ := get[[]controlapi.App](t, keyComputerApps(computerID))
	for _, id := range ids {
		if !slices.ContainsFunc(apps, func(a controlapi.App) bool { return a.Live && a.ID == id }) {
			return refuse(controlapi.CodeInvalid, "This computer does not serve one of the apps named.")
		}
	}
	return nil
}

// weight is how much a row counts against maxGiven.
func (p person) weight() int {
	return len(p.Apps) + len(p.Until) + len(p.Ended) + len(p.Kept) + len(p.ByGroup)
}

// roomFor refuses the row p when with it a computer has more than it can have.
func (t *txn) roomFor(computerID string, p person) error {
	people, grants := 1, p.weight()
	for _, other := range each[person](t, keyPersons(computerID)) {
		if other.AccountID != p.AccountID {
			people, grants = people+1, grants+other.weight()
		}
	}
	switch {
	case people > maxPeople:
		return refuse(controlapi.CodeForbidden, "This computer has as many people as it can have, removed ones included.")
	case grants > maxGiven:
		return refuse(controlapi.CodeForbidden, "This computer has given out as many apps as it can. Withdraw some that are not used any more.")
	}
	return nil
}

// indexEnds has the indexes of ends follow a row.
func (t *txn) indexEnds(computerID string, before, after person) {
	account := before.AccountID
	if account == "" {
		account = after.AccountID
	}
	index := func(prefix string, before, after map[string]time.Time) {
		for id, at := range before {
			if !after[id].Equal(at) {
				t.delete(keyEnd(prefix, at, computerID, account, id))
			}
		}
		for id, at := range after {
			if !before[id].Equal(at) {
				t.ends = true
				t.put(keyEnd(prefix, at, computerID, account, id), struct{}{}, 0)
			}
		}
	}
	index(keyEnds, before.Until, after.Until)
	index(keyEnded, before.Ended, after.Ended)
}

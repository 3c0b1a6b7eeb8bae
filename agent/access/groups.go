package access

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// Groups. What a group opens is added to what people were given whenever the snapshot, the
// groups or what is withdrawn change, and Decide asks for both alike.

// loadGroups reads what is kept of groups.
func (a *Access) loadGroups(st *state) (err error) {
	if st.groups, err = a.store.Groups(); err != nil {
		return fmt.Errorf("read the groups: %w", err)
	}
	withheld, err := a.store.Withdrawn()
	if err != nil {
		return fmt.Errorf("read what no group opens: %w", err)
	}
	st.withheld = setOf(withheld, func(w store.Withdrawn) store.Withdrawn { return w })
	return nil
}

// regroup says anew of each person what groups open to them. The people before are left
// as they are: others may be reading them.
func (st *state) regroup() {
	people := make(map[string]*person, len(st.people))
	for id, before := range st.people {
		next := *before
		next.byGroup = nil
		people[id] = &next
	}
	st.people = people
	for _, g := range st.groups {
		st.ends = st.ends || slices.ContainsFunc(g.Apps, func(app store.GroupApp) bool { return !app.Until.IsZero() })
		for _, m := range g.Members {
			p := people[m.AccountID]
			if !g.Removed.IsZero() || p == nil || !isMember(m, p.Person) {
				continue
			}
			for _, app := range g.Apps {
				st.open(p, app)
			}
		}
	}
}

// open adds one app that a group opens to p, unless it was withdrawn from them. Of two
// groups the later end counts.
func (st *state) open(p *person, app store.GroupApp) {
	if st.withheld[store.Withdrawn{AccountID: p.AccountID, AppID: app.AppID}] {
		return
	}
	if p.byGroup == nil {
		p.byGroup = map[string]time.Time{}
	}
	end, opened := p.byGroup[app.AppID]
	switch {
	case !opened:
		end = app.Until
	case end.IsZero() || app.Until.IsZero():
		end = time.Time{}
	default:
		end = later(end, app.Until)
	}
	p.byGroup[app.AppID] = end
}

// isMember says whether a person is in a group by their row: they were not removed since
// they joined, and are not the owner, who can open everything.
func isMember(m store.GroupMember, row controlapi.Person) bool {
	return m.How != store.MemberOut && row.Role != controlapi.RoleOwner && row.Status != controlapi.PersonRemoved && !m.Since.IsZero() && m.Since.Equal(row.Since)
}

// groupEnds are the moments at which a group opens an app no more.
func (st *state) groupEnds() (ends []time.Time) {
	for _, g := range st.groups {
		for _, app := range g.Apps {
			if g.Removed.IsZero() && !app.Until.IsZero() {
				ends = append(ends, app.Until)
			}
		}
	}
	return ends
}

// withGroups is a row with what groups open to its person now.
func (a *Access) withGroups(row controlapi.Person, now time.Time) controlapi.Person {
	p := a.state.Load().people[row.AccountID]
	if p == nil || len(p.byGroup) == 0 || !isMember(store.GroupMember{Since: p.Since}, row) {
		return row
	}
	row.Apps, row.Until, row.Ended = slices.Clone(row.Apps), maps.Clone(row.Until), maps.Clone(row.Ended)
	for id, end := range p.byGroup {
		own, dated := row.Until[id]
		switch given := slices.Contains(row.Apps, id); {
		case !end.IsZero() && !now.Before(end), given && !dated:
			continue
		case given && !end.IsZero():
			end = later(own, end)
		case !given:
			row.Apps = append(row.Apps, id)
		}
		delete(row.Ended, id)
		delete(row.Until, id)
		if !end.IsZero() {
			if row.Until == nil {
				row.Until = map[string]time.Time{}
			}
			row.Until[id] = end
		}
	}
	return row
}

// Groups are the owner's, without those that were removed. They must not be changed.
func (a *Access) Groups() []store.Group {
	return slices.DeleteFunc(slices.Clone(a.state.Load().groups), func(g store.Group) bool { return !g.Removed.IsZero() })
}

// Fills are the groups of providers that fill some of the owner's, sorted.
func (a *Access) Fills() (all []string) {
	for _, g := range a.Groups() {
		if g.From != "" {
			all = append(all, g.From)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// RemovedGroups are those that can still be had back, in no order.
func (a *Access) RemovedGroups() []store.Group {
	return slices.DeleteFunc(slices.Clone(a.state.Load().groups), func(g store.Group) bool { return g.Removed.IsZero() })
}

// ByGroup is what groups open now, by account and app, with the ends; nil for nothing.
func (a *Access) ByGroup() map[string]map[string]time.Time {
	now, _ := a.clock.time()
	var out map[string]map[string]time.Time
	for id, p := range a.state.Load().people {
		open := maps.Clone(p.byGroup)
		maps.DeleteFunc(open, func(_ string, end time.Time) bool { return !end.IsZero() && !now.Before(end) })
		if len(open) == 0 {
			continue
		}
		if out == nil {
			out = map[string]map[string]time.Time{}
		}
		out[id] = open
	}
	return out
}

// Members are the rows of those who are in a group, by the last snapshot.
func (a *Access) Members(g store.Group) (rows []controlapi.Person) {
	people := a.state.Load().people
	for _, m := range g.Members {
		if p := people[m.AccountID]; p != nil && isMember(m, p.Person) {
			rows = append(rows, p.Person)
		}
	}
	return rows
}

// PutGroup has a group be as g is from now on, in place of the one with its ID, and forgets
// those with the ids. Where it only takes away, access ends first, however long the disk
// takes, and the error says that it may come back after a restart; else nothing changes
// before it is written.
func (a *Access) PutGroup(g store.Group, takes bool, forget ...string) (closed int, err error) {
	change := func(next *state) (changed bool) {
		before := *next
		gone := func(other store.Group) bool { return other.ID == g.ID || slices.Contains(forget, other.ID) }
		next.groups = append(slices.DeleteFunc(slices.Clone(next.groups), gone), g)
		next.regroup()
		_, least := a.clock.time()
		next.devices = next.keptDevices(&before, true, least)
		return true
	}
	if takes {
		closed = a.swap(change)
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := a.store.PutGroup(g, forget...); err != nil {
		return closed, fmt.Errorf("keep a group: %w", err)
	}
	closed += a.swap(change)
	a.keepDevices()
	a.endsWake.Raise()
	return closed, nil
}

// withhold has no group open something, without the disk.
func (a *Access) withhold(w store.Withdrawn) {
	a.swap(func(next *state) (changed bool) {
		if next.withheld[w] {
			return false
		}
		next.withheld = maps.Clone(next.withheld)
		next.withheld[w] = true
		next.regroup()
		return true
	})
}

// Withdraw has no group open one app to one person, until GiveAgain. It closes nothing that
// they were given by themselves.
func (a *Access) Withdraw(w store.Withdrawn) error {
	a.withhold(w)
	a.writing.Lock()
	defer a.writing.Unlock()
	a.withhold(w) // a GiveAgain may have come between
	return a.store.Withdraw(w)
}

// IsWithdrawn says whether no group opens one app to one person.
func (a *Access) IsWithdrawn(w store.Withdrawn) bool { return a.state.Load().withheld[w] }

// OpenedByGroup says whether a group of a person's opens an app, or would were it not
// withdrawn from them.
func (a *Access) OpenedByGroup(accountID, appID string) bool {
	st := a.state.Load()
	now, _ := a.clock.time()
	p := st.people[accountID]
	return p != nil && slices.ContainsFunc(st.groups, func(g store.Group) bool {
		return g.Removed.IsZero() && slices.ContainsFunc(g.Members, func(m store.GroupMember) bool { return m.AccountID == accountID && isMember(m, p.Person) }) &&
			slices.ContainsFunc(g.Apps, func(app store.GroupApp) bool {
				return app.AppID == appID && (app.Until.IsZero() || now.Before(app.Until))
			})
	})
}

// GiveAgain has groups open apps again to a person from whom they were withdrawn.
func (a *Access) GiveAgain(accountID string, appIDs ...string) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	before := a.state.Load().withheld
	var again []store.Withdrawn
	for _, id := range appIDs {
		if w := (store.Withdrawn{AccountID: accountID, AppID: id}); before[w] {
			again = append(again, w)
		}
	}
	return a.giveAgain(again)
}

// maxStrangers is how much withdrawn there is at least before any of people whom the snapshot
// does not name is forgotten: the next one may name them.
const maxStrangers = 5000

// ForgetWithdrawn forgets what is withdrawn of apps that are not here any more, by what here
// says: approved anew they have another id. Where there is much, it forgets what is of people
// whom the snapshot does not name.
func (a *Access) ForgetWithdrawn(here func(appID string) bool) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	st := a.state.Load()
	var gone []store.Withdrawn
	for w := range st.withheld {
		stranger := st.received && st.people[w.AccountID] == nil && len(st.withheld) > maxStrangers
		if !here(w.AppID) || stranger {
			gone = append(gone, w)
		}
	}
	return a.giveAgain(gone)
}

// giveAgain has nothing of these be withdrawn. writing is held.
func (a *Access) giveAgain(again []store.Withdrawn) error {
	if len(again) == 0 {
		return nil
	}
	if err := a.store.GiveAgain(again...); err != nil {
		return err
	}
	a.swap(func(next *state) (changed bool) {
		next.withheld = maps.Clone(next.withheld)
		for _, w := range again {
			delete(next.withheld, w)
		}
		next.regroup()
		return true
	})
	return nil
}

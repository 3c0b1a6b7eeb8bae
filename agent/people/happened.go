package people

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// What the owner and the programs decide about people, for the owner to read: one line
// of activity a person and app.

// happened writes a line for each app, and one for none.
func (p *People) happened(line agentapi.Activity, who controlapi.Person, apps []engine.App) {
	line.At, line.Email, line.AccountID = p.cfg.Now().UTC(), who.Email, who.AccountID
	if len(apps) == 0 {
		p.cfg.Activity.Add(line)
	}
	for _, app := range apps {
		line.App, line.Name, line.Until = app.Label, app.Name, who.Until[app.ID]
		p.cfg.Activity.Add(line)
	}
}

// ownerGave is what the owner's giving was: an invitation for whoever has not
// accepted one yet, and else an app they had not, or another date of one they had.
func (p *People) ownerGave(before, after controlapi.Person, apps []engine.App) {
	p.wake.Raise()
	for _, app := range apps {
		line := agentapi.Activity{Kind: agentapi.ActivityGiven, Owner: true}
		switch had := slices.Contains(before.Apps, app.ID); {
		case before.Status != controlapi.PersonActive && before.Role != controlapi.RoleOwner:
			line.Kind = agentapi.ActivityInvited
		case had && before.Until[app.ID].Equal(after.Until[app.ID]):
			continue // nothing that anybody would read
		case had:
			line.Kind = agentapi.ActivityUntil
		}
		p.happened(line, after, []engine.App{app})
	}
}

// asTheyWere remembers everybody as they are here now: whoever is given something was
// that before.
func (p *People) asTheyWere() func(accountID string) controlapi.Person {
	people, away := p.cfg.Access.Snapshot().People, p.takenAway(unconfirmed)
	return func(accountID string) controlapi.Person {
		row, _ := find(people, func(row controlapi.Person) bool { return row.AccountID == accountID })
		return away.without(row)
	}
}

// TakenHere is what was taken away on this computer and no snapshot shows yet.
func (p *People) TakenHere() map[store.DenyRecord]bool { return p.takenAway(unconfirmed) }

// asKnownHere is a person as the last snapshot has them, less what was taken away.
func (p *People) asKnownHere(accountID string) controlapi.Person {
	row, _ := p.inSnapshot(accountID)
	return p.takenAway(unconfirmed).without(row)
}

// namedApps are the approved apps with these ids.
func (p *People) namedApps(ids ...string) []engine.App {
	var apps []engine.App
	for _, app := range p.cfg.Apps.Approved() {
		if slices.Contains(ids, app.ID) {
			apps = append(apps, app)
		}
	}
	return apps
}

// cameAndWent are the grants that ended before any reading had them. mu is held.
func (p *People) cameAndWent(before, now []controlapi.Grant, ended []controlapi.RevokedGrant) (gone []controlapi.RevokedGrant) {
	at := time.Now()
	for _, g := range slices.Concat(before, now) {
		p.grantsSeen[g.ID] = at
	}
	for _, g := range ended {
		if _, seen := p.grantsSeen[g.ID]; !seen && g.ClientName != "" {
			gone = append(gone, g)
		}
		p.grantsSeen[g.ID] = at
	}
	// A snapshot that is on its way may still name what two readings do not have.
	maps.DeleteFunc(p.grantsSeen, func(_ string, seen time.Time) bool { return at.Sub(seen) > 2*controlapi.GrantMemory })
	return gone
}

// clientsChanged writes down which clients people let in or took their grant from,
// between two readings of all grants, and those of gone, which neither has. Those revoked
// here, and those of people who were removed, are written down already.
func (p *People) clientsChanged(before, now []controlapi.Grant, gone []controlapi.RevokedGrant) {
	away := p.takenAway(unconfirmed)
	isAway := func(g controlapi.Grant) bool {
		return away[store.DenyRecord{GrantID: g.ID}] || p.asKnownHere(g.AccountID).Status == controlapi.PersonRemoved
	}
	has := func(all []controlapi.Grant, g controlapi.Grant) bool {
		return slices.ContainsFunc(all, func(other controlapi.Grant) bool {
			return other.ClientID == g.ClientID && other.AccountID == g.AccountID
		})
	}
	// One that was let in to more apps than it was before was let in anew.
	opens := func(all []controlapi.Grant, g controlapi.Grant) bool {
		return slices.ContainsFunc(controlapi.FoldGrants(all), func(other controlapi.Grant) bool {
			return has([]controlapi.Grant{other}, g) && (len(other.Apps) == 0 ||
				len(g.Apps) > 0 && !slices.ContainsFunc(g.Apps, func(id string) bool { return !slices.Contains(other.Apps, id) }))
		})
	}
	write := func(kind string, g controlapi.Grant) {
		if !isAway(g) {
			p.cfg.Activity.Add(agentapi.Activity{Kind: kind, Email: g.Email, AccountID: g.AccountID, What: called(g.ClientID, g.ClientName)})
		}
	}
	for _, g := range controlapi.FoldGrants(now) {
		if !opens(before, g) {
			write(agentapi.ActivityClientIn, g)
		}
	}
	for _, g := range controlapi.FoldGrants(before) {
		if !has(now, g) {
			write(agentapi.ActivityClientOut, g)
		}
	}
	for _, g := range gone {
		for _, kind := range []string{agentapi.ActivityClientIn, agentapi.ActivityClientOut} {
			p.cfg.Activity.Add(agentapi.Activity{Kind: kind, Email: g.Email, AccountID: g.AccountID, What: g.ClientName})
		}
	}
}

// keptClients are the grants that the last run of an agent told of; false where none did
// on this computer.
func (p *People) keptClients(computer string) ([]controlapi.Grant, bool) {
	kept, err := p.cfg.Store.Clients()
	if err != nil {
		p.cfg.Log.Warn("what is kept of remote clients cannot be read", "err", err)
	}
	return kept.Grants, err == nil && computer != "" && kept.Computer == computer
}

// keepClients keeps the grants that clientsChanged told of, for the next start.
func (p *People) keepClients(computer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := slices.Clone(p.grants)
	for i := range now {
		now[i].LastUsedAt = time.Time{} // which nothing is told of
	}
	if computer == "" || p.clientsKept != nil && reflect.DeepEqual(now, p.clientsKept) {
		return
	}
	if err := p.cfg.Store.SaveClients(store.Clients{Computer: computer, Grants: now}); err != nil {
		p.cfg.Log.Warn("the remote clients could not be kept", "err", err)
		return
	}
	p.clientsKept = now
}

// Row is a person as they are here now; false for somebody the last snapshot does not
// name.
func (p *People) Row(accountID string) (controlapi.Person, bool) {
	_, known := p.inSnapshot(accountID)
	return p.asKnownHere(accountID), known
}

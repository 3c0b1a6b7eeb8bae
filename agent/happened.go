package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/certs"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// What happened elsewhere, or by itself, for the owner to read.

// serverAwayAfter is how long the control plane has not answered when that is
// written down: roaming takes a moment.
const serverAwayAfter = time.Minute

// AddActivity keeps a line of what happened.
func (a *Agent) AddActivity(line agentapi.Activity) { a.activity.Add(line) }

// happenedElsewhere writes down what people did between two snapshots of one computer.
// What was taken away here before the second was written down then.
func (a *Agent) happenedElsewhere(before, now controlapi.Snapshot, here map[store.DenyRecord]bool) {
	if before.Computer.ID != now.Computer.ID || before.Version == "" {
		return // other people, of another account
	}
	a.peopleChanged(before, now, here)
	a.passwordsChanged(before, now, here)
	labels := a.labels()
	for _, k := range now.Knocks {
		if !slices.ContainsFunc(before.Knocks, func(old controlapi.Knock) bool { return old.ID == k.ID }) {
			a.AddActivity(agentapi.Activity{Kind: agentapi.ActivityKnocked, Email: k.Email, AccountID: k.AccountID, App: labels[k.App]})
		}
	}
}

// peopleChanged writes down who accepted an invitation, and who left.
func (a *Agent) peopleChanged(before, now controlapi.Snapshot, here map[store.DenyRecord]bool) {
	active := func(people []controlapi.Person, id string) bool {
		return slices.ContainsFunc(people, func(p controlapi.Person) bool { return p.AccountID == id && p.Status == controlapi.PersonActive })
	}
	write := func(kind string, p controlapi.Person) {
		a.AddActivity(agentapi.Activity{Kind: kind, Email: p.Email, AccountID: p.AccountID})
	}
	for _, p := range now.People {
		if p.Status == controlapi.PersonActive && p.Role != controlapi.RoleOwner && !active(before.People, p.AccountID) {
			write(agentapi.ActivityAccepted, p)
		}
	}
	for _, p := range before.People {
		if p.Status == controlapi.PersonActive && p.Role != controlapi.RoleOwner && !active(now.People, p.AccountID) && !here[store.DenyRecord{AccountID: p.AccountID}] {
			write(agentapi.ActivityLeft, p)
		}
	}
}

// passwordsChanged writes down the app passwords that members made and revoked. The
// owner's own are written down where they are made.
func (a *Agent) passwordsChanged(before, now controlapi.Snapshot, here map[store.DenyRecord]bool) {
	owner, _ := a.access.Owner()
	has := func(all []controlapi.AppPassword, id string) bool {
		return slices.ContainsFunc(all, func(row controlapi.AppPassword) bool { return row.ID == id })
	}
	write := func(kind string, row controlapi.AppPassword) {
		i := slices.IndexFunc(now.People, func(p controlapi.Person) bool {
			return p.AccountID == row.AccountID && slices.Contains(p.Apps, row.AppID)
		})
		if i < 0 || row.AccountID == owner.AccountID || here[store.DenyRecord{PasswordID: row.ID}] {
			return // it went with the app, or was revoked here
		}
		for _, app := range a.apps.Approved() {
			if app.ID == row.AppID {
				a.AddActivity(agentapi.Activity{Kind: kind, Email: now.People[i].Email, AccountID: row.AccountID, App: app.Label, Name: app.Name})
			}
		}
	}
	for _, row := range now.Passwords {
		if !has(before.Passwords, row.ID) {
			write(agentapi.ActivityPasswordMade, row)
		}
	}
	for _, row := range before.Passwords {
		if !has(now.Passwords, row.ID) {
			write(agentapi.ActivityPasswordRevoked, row)
		}
	}
}

// watchServer writes down when the control plane has not answered for a while, and
// when it does again.
func (a *Agent) watchServer(ctx context.Context) error {
	changed, cancel := a.changes.Subscribe()
	defer cancel()
	later := time.NewTimer(serverAwayAfter)
	defer later.Stop()
	host, away := strings.TrimPrefix(a.authURL(), "https://"), false
	for {
		state := a.remote.State()
		lasts := time.Since(state.Since)
		switch {
		case state.Connected && away:
			away = false
			a.AddActivity(agentapi.Activity{Kind: agentapi.ActivityServerBack, What: host})
		case state.Connected || away || state.Refused:
		case lasts >= serverAwayAfter:
			away = true
			a.AddActivity(agentapi.Activity{At: state.Since, Kind: agentapi.ActivityServerAway, What: host})
		default:
			later.Reset(serverAwayAfter - lasts)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-later.C:
		}
	}
}

// watchCertificates writes down which certificates cannot be had, and which were
// renewed, of those that are ordered.
func (a *Agent) watchCertificates(ctx context.Context) error {
	changed, cancel := a.certified.Subscribe()
	defer cancel()
	seen := map[string]certs.State{}
	for {
		now := map[string]certs.State{}
		for _, name := range a.names.Ordered() {
			state, known := a.certs.State(name)
			before, was := seen[name]
			switch {
			case known && !state.Problem.IsZero() && before.Problem.IsZero():
				a.AddActivity(agentapi.Activity{Kind: agentapi.ActivityCertificateTrouble, What: name})
			case known && state.Problem.IsZero() && was && !before.NotAfter.IsZero() && state.NotAfter.After(before.NotAfter):
				a.AddActivity(agentapi.Activity{Kind: agentapi.ActivityCertificateRenewed, What: name, Until: state.NotAfter})
			}
			if known {
				now[name] = state
			}
		}
		if len(now) > 0 {
			seen = now // none are ordered while no relay is there, which is no change of theirs
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

package people

import (
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// What others did, as two snapshots show, for the owner to read.

// ChangedElsewhere tells the owner of the people who accepted an invitation between two
// snapshots, and writes down what people did. here is what TakenHere said before the
// second: that was written down then.
func (p *People) ChangedElsewhere(before, now controlapi.Snapshot, here map[store.DenyRecord]bool) {
	labels, _, _ := p.labels()
	for _, who := range accepted(before, now) {
		p.cfg.Apps.Note(agentapi.Notice{
			At: p.cfg.Now().UTC(), Kind: agentapi.NoticeAccepted, Visitor: &agentapi.FirstVisit{AccountID: who.AccountID, Email: who.Email},
		}, words.Text{acceptedWords(who, labels)})
	}
	if before.Computer.ID != now.Computer.ID || before.Version == "" {
		return // other people, of another account
	}
	p.peopleChanged(before, now, here)
	p.passwordsChanged(before, now, here)
	for _, k := range now.Knocks {
		if !slices.ContainsFunc(before.Knocks, func(old controlapi.Knock) bool { return old.ID == k.ID }) {
			p.cfg.Activity.Add(agentapi.Activity{Kind: agentapi.ActivityKnocked, Email: k.Email, AccountID: k.AccountID, App: labels[k.App]})
		}
	}
}

// peopleChanged writes down who accepted an invitation, and who left.
func (p *People) peopleChanged(before, now controlapi.Snapshot, here map[store.DenyRecord]bool) {
	active := func(people []controlapi.Person, id string) bool {
		return slices.ContainsFunc(people, func(who controlapi.Person) bool { return who.AccountID == id && who.Status == controlapi.PersonActive })
	}
	write := func(kind string, who controlapi.Person) {
		p.cfg.Activity.Add(agentapi.Activity{Kind: kind, Email: who.Email, AccountID: who.AccountID})
	}
	for _, who := range now.People {
		if who.Status == controlapi.PersonActive && who.Role != controlapi.RoleOwner && !active(before.People, who.AccountID) {
			write(agentapi.ActivityAccepted, who)
		}
	}
	for _, who := range before.People {
		if who.Status == controlapi.PersonActive && who.Role != controlapi.RoleOwner && !active(now.People, who.AccountID) && !here[store.DenyRecord{AccountID: who.AccountID}] {
			write(agentapi.ActivityLeft, who)
		}
	}
}

// passwordsChanged writes down the app passwords that members made and revoked. The
// owner's own are written down where they are made.
func (p *People) passwordsChanged(before, now controlapi.Snapshot, here map[store.DenyRecord]bool) {
	owner, _ := p.cfg.Access.Owner()
	has := func(all []controlapi.AppPassword, id string) bool {
		return slices.ContainsFunc(all, func(row controlapi.AppPassword) bool { return row.ID == id })
	}
	write := func(kind string, row controlapi.AppPassword) {
		who, has := find(now.People, func(p controlapi.Person) bool {
			return p.AccountID == row.AccountID && slices.Contains(p.Apps, row.AppID)
		})
		if !has || row.AccountID == owner.AccountID || here[store.DenyRecord{PasswordID: row.ID}] {
			return // it went with the app, or was revoked here
		}
		for _, app := range p.cfg.Apps.Approved() {
			if app.ID == row.AppID {
				p.cfg.Activity.Add(agentapi.Activity{Kind: kind, Email: who.Email, AccountID: row.AccountID, App: app.Label, Name: app.Name})
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

// accepted returns the people who have become active. Somebody who is quick is never seen
// as invited: nothing but an invitation makes a person active.
func accepted(before, now controlapi.Snapshot) (people []controlapi.Person) {
	if before.Computer.ID != now.Computer.ID {
		return nil // other people, of another account
	}
	active := map[string]bool{}
	for _, p := range before.People {
		active[p.AccountID] = p.Status == controlapi.PersonActive
	}
	for _, p := range now.People {
		if !active[p.AccountID] && p.Status == controlapi.PersonActive && p.Role != controlapi.RoleOwner {
			people = append(people, p)
		}
	}
	return people
}

// acceptedWords is a sentence about one of them; labels are the apps', by id.
func acceptedWords(who controlapi.Person, labels map[string]string) words.Sentence {
	open := labelsOf(slices.Values(who.Apps), labels)
	if len(open) == 0 {
		return words.Of("%s accepted your invitation.", who.Email)
	}
	return words.Of("%[1]s accepted your invitation and can open %[2]s.", who.Email, words.Names{Names: open[:min(len(open), maxNamed)], More: max(0, len(open)-maxNamed)})
}

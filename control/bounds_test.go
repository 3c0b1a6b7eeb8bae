package control

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// longestLabel is how long the label of an app may be.
const longestLabel = maxLabel

// mostSessions is how many an account has.
const mostSessions = maxSessions

// fullApps are as many apps as a computer can have, with the longest ids and
// labels there are: "<" takes six bytes of JSON.
func fullApps() []controlapi.App {
	apps := make([]controlapi.App, MaxApps)
	for i := range apps {
		apps[i] = controlapi.App{
			ID: fmt.Sprintf("%064d", i), Name: fmt.Sprintf("%063d", i), Label: strings.Repeat("<", longestLabel), Live: true,
		}
	}
	return apps
}

// Weakness: labels that grow when they are encoded made a row larger than the
// store takes, which was an internal error. Checked: the largest list is stored,
// and one character more is refused with a sentence.
func TestTheLargestListOfAppsIsStored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	apps := fullApps()
	programs.Must(t, b.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Apps: apps}))
	for _, label := range []string{strings.Repeat("<", longestLabel+1), strings.Repeat("𝄞", longestLabel+1)} {
		apps[0].Label = label
		err := b.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Apps: apps})
		wantRefusal(t, err, controlapi.CodeInvalid)
	}
	apps[0].Label = strings.Repeat("𝄞", longestLabel)
	if err := b.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Apps: apps}); err != nil {
		t.Error(err)
	}
}

// A computer with all the people, grants and passwords it can have has a snapshot that
// agents read, and is told in a sentence when it wants more.
func TestTheLargestSnapshotCanBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	apps := fullApps()
	programs.Must(t, b.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Apps: apps}))
	var ids []string
	for _, a := range apps {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	email := func(n int) string {
		local := fmt.Sprintf("%064d", n)
		return strings.ReplaceAll(local, "00", "&&") + "@" + strings.Repeat(strings.Repeat("a", 60)+".", 3) + "example"
	}
	full := maxGiven / MaxApps / 2 // each ends
	allUntil := map[string]time.Time{}
	for _, id := range ids {
		allUntil[id] = b.clock.Now().Add(controlapi.MaxUntil).UTC().Truncate(time.Second)
	}
	owner, rows := b.rowOf(e.Computer.ID, e.AccountID), map[string]any{}
	for n := range maxPeople - 1 { // the owner is one
		p := person{
			AccountID: fmt.Sprintf("%026d", n), Email: email(n), Role: controlapi.RoleMember,
			Status: controlapi.PersonActive, Epoch: laterEpoch(0, b.clock.Now()),
		}
		if n < full {
			p.Apps, p.Until = ids, allUntil
		}
		rows[keyPerson(e.Computer.ID, p.AccountID)] = p
	}
	for n := range controlapi.MaxPasswordsComputer {
		_, hash := newPassword()
		row := appPassword{ID: anID(), AccountID: e.AccountID, AppID: ids[n%MaxApps], Name: strings.Repeat("<", controlapi.MaxPasswordName), Hash: hash, InvitedAt: owner.InvitedAt}
		rows[keyPassword(e.Computer.ID, row.AccountID, row.ID)] = row
	}
	b.keepAll(rows)
	all := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID))
	snapshot, err := json.Marshal(all)
	if err != nil || len(all.Passwords) != controlapi.MaxPasswordsComputer || len(snapshot) > controlapi.MaxAnswer*3/4 {
		t.Errorf("the snapshot has %d bytes with %d passwords, %v", len(snapshot), len(all.Passwords), err)
	}
	infos := ok[[]controlapi.PasswordInfo](t)(b.Passwords.OfComputer(t.Context(), e.Computer.ID))
	if list, err := json.Marshal(controlapi.Passwords{Passwords: infos}); err != nil || len(list) > controlapi.MaxAnswer*3/4 {
		t.Errorf("the list of passwords has %d bytes, %v", len(list), err)
	}

	_, err = b.People.SetAccess(t.Context(), e.Computer.ID, controlapi.SetAccess{AccountID: fmt.Sprintf("%026d", full), App: ids[0], Granted: true})
	wantRefusal(t, err, controlapi.CodeForbidden)
	_, err = b.People.Invite(t.Context(), e.Computer.ID, controlapi.Invite{Email: "bob@example.com", Apps: ids[:1]})
	if !IsRefusal(err, controlapi.CodeForbidden) || !strings.Contains(err.Error(), "as many people") {
		t.Errorf("got %v", err)
	}
	b.drop(keyPerson(e.Computer.ID, fmt.Sprintf("%026d", full)))
	_, err = b.People.Invite(t.Context(), e.Computer.ID, controlapi.Invite{Email: "bob@example.com", Apps: ids[:1]})
	if !IsRefusal(err, controlapi.CodeForbidden) || !strings.Contains(err.Error(), "Withdraw") {
		t.Errorf("got %v", err)
	}
	ok[controlapi.Person](t)(b.People.SetAccess(t.Context(), e.Computer.ID, controlapi.SetAccess{AccountID: fmt.Sprintf("%026d", 0), App: ids[0]}))
	ok[controlapi.Person](t)(b.People.Invite(t.Context(), e.Computer.ID, controlapi.Invite{Email: "bob@example.com", Apps: ids[:1]}))
}

// An auth host that an app could have is refused: the relay would not know whose
// it is.
func TestAuthHostIsNobodysApp(t *testing.T) {
	t.Parallel()
	store := newBench(t).store
	for host, good := range map[string]bool{
		"control.porch.example":       true,
		"control.example.net":         true,
		"example":                     true,
		"a.b.porch.example":           false,
		"deep.down.b.porch.example":   false,
		"porch.example":               false,
		"control.notporch.example":    true,
		"control.maya.porch.example.": false,
	} {
		_, err := New(Config{Store: store, Naming: Naming{Domain: "porch.example", AuthHost: host}, Mail: brokenQueue{}})
		if (err == nil) != good {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// What removing leaves behind is the memory of whose name it was.
func TestRemoveComputer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	c := b.registered()
	bob := b.member(e.Computer.ID, "bob@example.com")
	tokens := c.granted(bob, "maya")
	b.note(e.Computer.ID, b.clock.Now())
	programs.Must(t, b.Feed.Seen.Write(t.Context()))
	b.note(e.Computer.ID, b.clock.Now().Add(1)) // and is removed before it is written
	wantRefusal(t, b.Computers.Remove(t.Context(), bob.ID, "maya"), controlapi.CodeNotFound)
	wantRefusal(t, b.Computers.Disconnect(t.Context(), bob.ID, "maya"), controlapi.CodeNotFound)
	programs.Must(t, b.Computers.Remove(t.Context(), e.AccountID, "maya"))
	programs.Must(t, b.Feed.Seen.Write(t.Context()))
	_, err := b.Agents.Authenticate(t.Context(), e.Credential)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	_, err = c.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeAccessDenied)
	for key := range b.stored() {
		kind, _, _ := strings.Cut(key, "/")
		kept := slices.Contains([]string{"revoked-grant", "ended-credential", "former-name", "kept-name"}, kind)
		if !kept && (strings.Contains(key, e.Computer.ID) || strings.HasSuffix(key, "/maya")) {
			t.Errorf("%s is left", key)
		}
	}
	if other := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "maya@example.com", "maya")); other.Computer.ID == e.Computer.ID {
		t.Error("the next one is the same computer")
	}
}

// Leaving, as the person and their owner see it.
func TestLeave(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	bob := b.member(e.Computer.ID, "bob@example.com")
	before := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID))
	programs.Must(t, b.People.Leave(t.Context(), bob.ID, "maya"))
	if after := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID)); after.Version == before.Version {
		t.Error("the agent is not told")
	}
	wantRefusal(t, b.People.Leave(t.Context(), bob.ID, "maya"), controlapi.CodeNotFound)
	wantRefusal(t, b.People.Leave(t.Context(), bob.ID, "nowhere"), controlapi.CodeNotFound)
	wantRefusal(t, b.People.Leave(t.Context(), e.AccountID, "maya"), controlapi.CodeForbidden)
	if list := ok[[]Membership](t)(b.People.Memberships(t.Context(), bob.ID)); len(list) != 0 {
		t.Errorf("bob still has %+v", list)
	}
	i := slices.IndexFunc(ok[[]controlapi.Person](t)(b.People.List(t.Context(), e.Computer.ID)), func(p controlapi.Person) bool {
		return p.AccountID == bob.ID && p.Status == controlapi.PersonRemoved
	})
	if i < 0 {
		t.Error("the owner does not see that bob left")
	}
}

// An account's sessions are bounded; the one used longest ago gives way.
func TestSessionsPerAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	for n := range mostSessions + 5 {
		b.session(fmt.Sprint("s", n), e.AccountID)
		b.clock.Add(1e6)
	}
	list := ok[[]Session](t)(b.Sessions.List(t.Context(), e.AccountID))
	if len(list) != mostSessions || list[0].ID != fmt.Sprint("s", mostSessions+4) || list[mostSessions-1].ID != "s5" {
		t.Errorf("%d sessions, from %s to %s", len(list), list[0].ID, list[len(list)-1].ID)
	}
}

// The limits that people are told of, as numbers: tests that fill them up count by
// the constants themselves, and would not notice one that has grown.
func TestLimitsAreTheOnesPromised(t *testing.T) {
	t.Parallel()
	for what, limit := range map[string][2]time.Duration{
		"proof of who one is, for connecting a computer": {FreshFor, 10 * time.Minute},
		"a session's writes":                             {sessionSlide, 24 * time.Hour},
		"an enrolment":                                   {enrolmentLife, 10 * time.Minute},
		"a browser that is known":                        {KnownLife, 180 * 24 * time.Hour},
	} {
		if limit[0] != limit[1] {
			t.Errorf("%s: %v, want %v", what, limit[0], limit[1])
		}
	}
	if mostSessions != 50 || codeTries != 5 {
		t.Errorf("%d sessions, %d tries for a code; want 50 and 5", mostSessions, codeTries)
	}
}

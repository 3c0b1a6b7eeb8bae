package control

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

type byGroup = map[string]map[string]time.Time

// groups has the computer report what its groups open.
func (k keyring) groups(open byGroup) controlapi.Apps {
	k.t.Helper()
	var apps []controlapi.App
	for _, id := range []string{"app1", "app2", "app3"} {
		apps = append(apps, controlapi.App{ID: id, Name: "n-" + id, Label: "The " + id, Live: true})
	}
	reported := controlapi.Apps{Apps: apps, Groups: open}
	programs.Must(k.t, k.Agents.PutApps(k.t.Context(), k.owner.Computer.ID, reported))
	return reported
}

// visits says whether somebody gets a code for app3.
func (k keyring) visits(a Account) bool {
	k.t.Helper()
	v := ok[VisitRequest](k.t)(k.Visits.Parse(k.t.Context(), visitQuery("app", "app3", "redirect_uri", "https://n-app3.maya.localhost:8443/.porchlight/callback")))
	_, err := k.Visits.Begin(k.t.Context(), v, Session{Account: a})
	if err != nil {
		wantRefusal(k.t, err, controlapi.CodeForbidden)
	}
	return err == nil
}

func (k keyring) snapshot() controlapi.Snapshot {
	k.t.Helper()
	return ok[controlapi.Snapshot](k.t)(k.Agents.Snapshot(k.t.Context(), k.owner.Computer.ID))
}

func (k keyring) row(a Account) controlapi.Person {
	k.t.Helper()
	people := k.snapshot().People
	return people[slices.IndexFunc(people, func(p controlapi.Person) bool { return p.AccountID == a.ID })]
}

// What a group opens can be visited, listed and have passwords; the row that agents are
// told, of which one that knows no groups decides, has none of it. What leaves the group
// takes its passwords along.
func TestGroupsOpen(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	if k.visits(k.bob) {
		t.Fatal("bob visits what nobody gave him")
	}
	reported := k.groups(byGroup{k.bob.ID: {"app3": {}, "app1": {}}})
	if snap := k.snapshot(); snap.Reported != reported.Digest() {
		t.Errorf("the snapshot does not say that the groups are known")
	}
	if !k.visits(k.bob) {
		t.Error("bob cannot visit what a group opens")
	}
	if row := k.row(k.bob); !slices.Equal(row.Apps, []string{"app1", "app2"}) || row.Since.IsZero() {
		t.Errorf("agents are told %+v", row)
	}
	of := ok[[]Membership](t)(k.People.Memberships(t.Context(), k.bob.ID))
	if len(of) != 1 || len(of[0].Apps) != 3 {
		t.Errorf("bob sees %+v", of)
	}
	k.made(k.bob, "app3")
	k.made(k.bob, "app1")
	k.groups(byGroup{k.bob.ID: {"app3": {}}})
	if told := k.told(); len(told) != 2 {
		t.Errorf("app passwords: %v", told)
	}
	k.groups(nil)
	if told := k.told(); !slices.Equal(told, []string{k.bob.ID + " app1"}) || k.visits(k.bob) {
		t.Errorf("after he left, app passwords: %v", told)
	}
	if snap := k.snapshot(); snap.Reported == reported.Digest() {
		t.Error("the snapshot says that the groups are there still")
	}
}

// Who was removed, or has not come, opens nothing by a group, and a fresh invitation gives
// nothing of it back; what is withdrawn is open by none; an end ends.
func TestGroupsGiveNoMore(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		do   func(k keyring) error
		open bool
	}{
		"a withdrawal": {do: func(k keyring) error {
			_, err := k.People.SetAccess(t.Context(), k.owner.Computer.ID, controlapi.SetAccess{AccountID: k.bob.ID, App: "app3"})
			return err
		}},
		"of another app": {open: true, do: func(k keyring) error {
			_, err := k.People.SetAccess(t.Context(), k.owner.Computer.ID, controlapi.SetAccess{AccountID: k.bob.ID, App: "app1"})
			return err
		}},
		"a removal": {do: func(k keyring) error {
			_, err := k.People.Remove(t.Context(), k.owner.Computer.ID, controlapi.Remove{AccountID: k.bob.ID})
			return err
		}},
		"a removal, and invited again": {do: func(k keyring) error {
			_, err := k.People.Remove(t.Context(), k.owner.Computer.ID, controlapi.Remove{AccountID: k.bob.ID})
			since := k.row(k.bob).Since
			k.clock.Add(time.Second)
			k.joined(k.owner.Computer.ID, k.bob.Email, "app1")
			if k.row(k.bob).Since.Equal(since) {
				t.Error("agents cannot tell that he was invited anew")
			}
			return err
		}},
		"its end": {do: func(k keyring) error {
			k.clock.Add(time.Hour)
			return nil
		}},
		"the app": {do: func(k keyring) error {
			k.putApps("app1", "app2")
			k.putApps("app1", "app2", "app3")
			return nil
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newKeyring(t)
			k.groups(byGroup{k.bob.ID: {"app3": k.clock.Now().Add(time.Hour)}})
			if !k.visits(k.bob) {
				t.Fatal("the group opens nothing")
			}
			programs.Must(t, tt.do(k))
			if open := k.visits(k.bob); open != tt.open {
				t.Errorf("open afterwards: %v", open)
			}
		})
	}
	k := newKeyring(t)
	lena := ok[controlapi.Person](t)(k.People.Invite(t.Context(), k.owner.Computer.ID, controlapi.Invite{Email: "lena@example.com", Apps: []string{"app1"}}))
	k.groups(byGroup{lena.AccountID: {"app3": {}}, k.owner.AccountID: {"app3": {}}, "nobody": {"app3": {}}, k.bob.ID: {"app9": {}}})
	if k.visits(Account{ID: lena.AccountID}) || k.visits(Account{ID: "nobody"}) || len(k.rowOf(k.owner.Computer.ID, k.bob.ID).ByGroup) > 0 {
		t.Error("open to somebody who has not come, or is nobody, or of an app that is not there")
	}
	ok[Accepted](t)(k.People.AcceptInvitation(t.Context(), k.invitation("lena@example.com"), "", home))
	if !k.visits(Account{ID: lena.AccountID}) {
		t.Error("closed to somebody who has come")
	}
	many := byGroup{k.bob.ID: {}}
	for n := range controlapi.MaxByGroup + 1 {
		many[k.bob.ID][fmt.Sprint(n)] = time.Time{}
	}
	wantRefusal(t, k.Agents.PutApps(t.Context(), k.owner.Computer.ID, controlapi.Apps{Groups: many}), controlapi.CodeInvalid)
}

// A share and a group beside it are open until the later end.
func TestLaterEnd(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	given := []string{"app"}
	for _, tt := range []struct {
		apps    []string
		until   map[string]time.Time
		byGroup map[string]time.Time
		want    time.Time
	}{
		{given, nil, nil, time.Time{}},
		{given, map[string]time.Time{"app": early}, nil, early},
		{nil, nil, map[string]time.Time{"app": early}, early},
		{given, map[string]time.Time{"app": early}, map[string]time.Time{"app": late}, late},
		{given, map[string]time.Time{"app": late}, map[string]time.Time{"app": early}, late},
		{given, map[string]time.Time{"app": late}, map[string]time.Time{"app": {}}, time.Time{}},
		{given, nil, map[string]time.Time{"app": early}, time.Time{}},
	} {
		if end := (person{Apps: tt.apps, Until: tt.until, ByGroup: tt.byGroup}).endOf("app"); !end.Equal(tt.want) {
			t.Errorf("%+v ends at %v", tt, end)
		}
	}
}

package access_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"porchlight/agent/access"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Disconnecting closes what one visitor has open and nothing else, ends the
// sessions it was opened with and no others, and takes no access away.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	const photos = "id-photos"
	a, _ := open(t, t.TempDir(), newClock())
	a.SetSnapshot(snapshot(func(p []controlapi.Person) { p[1].Apps = append(p[1].Apps, photos) }))
	signedIn := func(account, app string) (cookie string, id access.Identity) {
		t.Helper()
		cookie = programs.Got(a.NewSession(app, account, 1, controlapi.ProofMail))(t)
		id, _, ok := a.Session(cookie, app)
		if !ok {
			t.Fatal("no session")
		}
		return cookie, id
	}
	opened, openID := signedIn(bob, notes)
	idle, _ := signedIn(bob, photos) // nothing is open in this one
	mayas, mayasID := signedIn(owner, notes)

	var cut []string
	enter := func(what string, id access.Identity, app string) {
		t.Helper()
		d, leave := a.Enter(id, app, func() { cut = append(cut, what) })
		if !d.Allowed {
			t.Fatalf("%s: %+v", what, d)
		}
		t.Cleanup(leave)
	}
	enter("bob's page", openID, notes)
	enter("bob's stream", openID, notes)
	enter("bob's launcher", access.Identity{AccountID: bob, Epoch: 1}, "")
	enter("bob's phone", access.Identity{AccountID: bob, GrantID: "g1", ClientID: "client-1"}, notes)
	enter("bob's script", access.Identity{AccountID: bob, GrantID: "g2", ClientID: "client-2"}, photos)
	enter("maya's page", mayasID, notes)

	here := func() string {
		var all []string
		for _, v := range a.Visitors() {
			line := v.Email + " " + v.GrantID
			for _, app := range []string{notes, photos, ""} {
				line += strings.Repeat(" "+app, v.Apps[app])
			}
			all = append(all, line)
		}
		slices.Sort(all)
		return strings.Join(all, "; ")
	}
	want := "bob@example.com  id-notes id-notes; bob@example.com g1 id-notes; bob@example.com g2 id-photos"
	if got := here(); got != want {
		t.Errorf("here are %s, want %s", got, want)
	}

	closed, err := a.Disconnect(access.Party{AccountID: bob})
	slices.Sort(cut)
	if err != nil || closed != 2 || !slices.Equal(cut, []string{"bob's page", "bob's stream"}) {
		t.Fatalf("closed %d, %q, %v", closed, cut, err)
	}
	if _, _, ok := a.Session(opened, notes); ok {
		t.Error("the session goes on")
	}
	if d, leave := a.Enter(openID, notes, func() {}); d.Reason != access.ReasonSessionOver {
		t.Errorf("one that was looked up before comes in: %+v", d)
	} else {
		leave()
	}
	for cookie, app := range map[string]string{idle: photos, mayas: notes} {
		if _, _, ok := a.Session(cookie, app); !ok {
			t.Errorf("another session ended, at %s", app)
		}
	}
	if _, again := signedIn(bob, notes); !a.Decide(again, notes).Allowed {
		t.Error("access was taken away")
	}

	cut = nil
	if closed, err = a.Disconnect(access.Party{AccountID: bob, GrantID: "g1"}); err != nil || closed != 1 || !slices.Equal(cut, []string{"bob's phone"}) {
		t.Fatalf("closed %d, %q, %v", closed, cut, err)
	}
	if got, want := here(), "bob@example.com g2 id-photos"; got != want {
		t.Errorf("here are %s, want %s", got, want)
	}
	if closed, err = a.Disconnect(access.Party{AccountID: "acc-nobody"}); err != nil || closed != 0 {
		t.Errorf("nobody: closed %d, %v", closed, err)
	}
}

// The owner's own browsers are no visitors, and counted neither as open nor as closed; what
// programs have of the owner's is, each by itself.
func TestOwnersBrowsersDoNotCount(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	a.SetSnapshot(withPasswords(nil))
	id, _, ok := a.Session(programs.Got(a.NewSession(notes, owner, 1, controlapi.ProofMail))(t), notes)
	byPassword, _, err := a.Password([]string{basic("maya@example.com", mayas)}, notes)
	if programs.Must(t, err); !ok || !id.Owns() || byPassword.Owns() {
		t.Fatalf("%+v, %+v", id, byPassword)
	}
	var browser atomic.Int32
	enter := func(id access.Identity) {
		_, leave := a.Enter(id, notes, func() {
			if id.BySession() {
				browser.Add(1)
			}
		})
		t.Cleanup(leave)
	}
	enter(id)
	if len(a.Visitors()) != 0 || a.Connections()[notes] != 0 || !a.AnyOpen() {
		t.Fatalf("the owner's browser counts: %v, %v", a.Visitors(), a.Connections())
	}
	enter(byPassword)
	enter(access.Identity{AccountID: owner, GrantID: "g1", ClientID: "client-1"})
	var here []string
	for _, v := range a.Visitors() {
		here = append(here, fmt.Sprintf("%s%s %v", v.GrantID, v.PasswordID, v.Owner))
	}
	if slices.Sort(here); strings.Join(here, ", ") != "g1 true, p3 true" || a.Connections()[notes] != 2 {
		t.Errorf("here: %q, %v", here, a.Connections())
	}
	if closed, err := a.Disconnect(access.Party{AccountID: owner, PasswordID: "p3"}); err != nil || closed != 1 {
		t.Errorf("closed %d, %v", closed, err)
	}
	if closed, err := a.GoDark(); err != nil || closed.Closed != 1 || browser.Load() != 1 {
		t.Errorf("in the dark: closed %d, browsers cut off %d, %v", closed.Closed, browser.Load(), err)
	}
}

// An entry that was told of an end is nobody else's to use, and what rests is not counted
// as open, neither as it comes nor as it leaves.
func TestLeaving(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	a.SetSnapshot(snapshot(nil))
	var heard, unheard access.Open
	a.EnterAs(&heard, bobsBrowser, notes, access.Cancel(func() {}))
	a.CloseAll()
	a.EnterAs(&unheard, bobsBrowser, notes, access.Cancel(func() {}))
	if heard.Leave() {
		t.Error("what was told of an end may be used again")
	}
	a.Rest(bobsBrowser, notes, func() {})()
	if !a.AnyOpen() || !unheard.Leave() || a.AnyOpen() {
		t.Error("what rests was counted, or what left is open")
	}
}

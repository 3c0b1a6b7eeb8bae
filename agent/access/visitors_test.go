package access_test

import (
	"slices"
	"strings"
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
		cookie = programs.Got(a.NewSession(app, account, 1))(t)
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
	want := "bob@example.com  id-notes id-notes; bob@example.com g1 id-notes; bob@example.com g2 id-photos; maya@example.com  id-notes"
	if got := here(); got != want {
		t.Errorf("here are %s, want %s", got, want)
	}

	closed, err := a.Disconnect(bob, "")
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
	if closed, err = a.Disconnect(bob, "g1"); err != nil || closed != 1 || !slices.Equal(cut, []string{"bob's phone"}) {
		t.Fatalf("closed %d, %q, %v", closed, cut, err)
	}
	if got, want := here(), "bob@example.com g2 id-photos; maya@example.com  id-notes"; got != want {
		t.Errorf("here are %s, want %s", got, want)
	}
	if closed, err = a.Disconnect("acc-nobody", ""); err != nil || closed != 0 {
		t.Errorf("nobody: closed %d, %v", closed, err)
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

package activity_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	db := programs.Got(store.Open(dir))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

// visit is a request of somebody for an app.
func visit(account, appID, label string) activity.Visit {
	return activity.Visit{Visited: store.Visited{AccountID: account, AppID: appID, Email: account + "@example.com", Label: label}}
}

// One line for each person and app and visit, however many requests it has; a
// visit lasts until half an hour goes by without one. What was written survives
// a restart.
func TestActivity(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	db := openStore(t, dir)
	a := activity.New(activity.Config{Store: db, Now: clock})
	browser := visit("bob", "id-notes", "notes")
	remote, named := browser, browser
	remote.GrantID, remote.ClientID = "g1", "c1"
	named.GrantID, named.ClientID = "g2", "c2"
	for range 50 {
		a.Opened(browser)
		now = now.Add(20 * time.Minute)
	}
	a.Opened(visit("bob", "id-photos", "photos"))
	a.Opened(visit("maya", "id-notes", "notes"))
	a.Opened(remote)
	a.Opened(remote)
	a.Opened(named)
	a.NameClients(map[string]string{"g2": "Pocket", "c2": "Pocket"}) // its grant is read only now
	now = now.Add(30 * time.Minute)
	a.Opened(browser)
	a.Add(agentapi.Activity{Email: "eve@example.com", App: "notes", Kind: agentapi.ActivityInvited, By: "Wiki"})
	want := "eve@example.com notes invited Wiki|bob@example.com notes opened |bob@example.com notes client Pocket|bob@example.com notes client c1|" +
		"maya@example.com notes opened |bob@example.com photos opened |bob@example.com notes opened |"
	check := func(what string) {
		t.Helper()
		lines := programs.Got(a.Lines(100))(t)
		var got strings.Builder
		for i, l := range lines {
			fmt.Fprintf(&got, "%s %s %s %s|", l.Email, l.App, l.Kind, l.By)
			if i > 0 && l.At.After(lines[i-1].At) {
				t.Errorf("%s: %v comes after %v", what, l.At, lines[i-1].At)
			}
		}
		if got.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got.String(), want)
		}
	}
	check("at once")
	if few, err := a.Lines(2); err != nil || len(few) != 2 || few[0].By != "Wiki" {
		t.Errorf("two lines: %+v, %v", few, err)
	}
	db.Close()
	a = activity.New(activity.Config{Store: openStore(t, dir), Now: clock})
	check("after a restart")
	now = now.Add(90*24*time.Hour - 15*time.Minute)
	a.Add(agentapi.Activity{Email: "late@example.com", App: "notes", Kind: agentapi.ActivityOpened})
	want = "late@example.com notes opened |eve@example.com notes invited Wiki|bob@example.com notes opened |"
	check("when the first visits are 90 days old")
	programs.Must(t, a.Clear())
	want = ""
	check("cleared")
}

// The owner is "you" in every line about them, also in one that was kept before that was,
// and a program that comes by a password of theirs is named.
func TestOwnerIsYou(t *testing.T) {
	t.Parallel()
	const maya = "maya@example.com"
	owner := ""
	a := activity.New(activity.Config{Store: openStore(t, t.TempDir()), Owner: func() string { return owner }})
	a.NameClients(map[string]string{"p1": "Calendar"})
	mine, bobs := visit("maya", "id-notes", "notes"), visit("bob", "id-notes", "notes")
	mine.Owner = true
	a.Opened(mine)
	_, err := a.Lines(1) // kept, and nobody is known to be the owner
	programs.Must(t, err)
	owner = maya
	a.Opened(bobs)
	bobs.PasswordID = "p2" // of a member it is the member
	a.Opened(bobs)
	mine.PasswordID = "p1"
	a.Opened(mine)
	owner = ""
	var got []string
	check := func(want string) {
		t.Helper()
		got = nil
		for _, l := range programs.Got(a.Lines(9))(t) {
			got = append(got, fmt.Sprintf("%s %s%s %v", l.Email, l.Kind, l.By, l.You))
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%s, want %s", all, want)
		}
	}
	check("maya@example.com clientCalendar true, bob@example.com opened false, maya@example.com opened false")
	owner = maya
	check("maya@example.com clientCalendar true, bob@example.com opened false, maya@example.com opened true")
}

// A request never waits for the disk, and what there is no room for is counted.
func TestActivityIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a := activity.New(activity.Config{Store: openStore(t, t.TempDir()), Log: slog.New(slog.NewTextHandler(&log, nil))})
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 2000 {
					a.Opened(visit(fmt.Sprint(i, " ", j), "id-notes", "Notes"))
				}
			})
		}
		all.Wait()
		if n := activity.Visits(a); n != 8192 {
			t.Errorf("%d visits are remembered", n)
		}
		programs.Run(t, a.Run)
		time.Sleep(time.Minute)
		synctest.Wait()
		lines, err := a.Lines(store.MaxActivity)
		if err != nil || len(lines) != 1024 || !strings.Contains(log.String(), fmt.Sprint("lines_dropped=", 8*2000-1024)) {
			t.Errorf("%d lines, %v, logged %s", len(lines), err, log.String())
		}
		// Room again, also for visits that were not remembered.
		time.Sleep(2 * time.Hour)
		a.Opened(visit("bob", "id-notes", "Notes"))
		a.Opened(visit("bob", "id-notes", "Notes"))
		if lines, err = a.Lines(store.MaxActivity); err != nil || len(lines) != 1025 {
			t.Errorf("%d lines, %v", len(lines), err)
		}
	})
}

// What happened just before the end is written before Run returns.
func TestActivityIsFlushedAtTheEnd(t *testing.T) {
	t.Parallel()
	db := openStore(t, t.TempDir())
	a := activity.New(activity.Config{Store: db})
	stop := programs.Run(t, a.Run)
	a.Opened(visit("bob", "id-notes", "Notes"))
	stop()
	if lines, err := db.Activity(10); err != nil || len(lines) != 1 || lines[0].Email != "bob@example.com" {
		t.Errorf("%+v, %v", lines, err)
	}
}

// A decision is on the disk when Add returns, with every visit before it; what
// strangers cause, and visits, take no room from decisions.
func TestDecisionsAreKeptAtOnce(t *testing.T) {
	t.Parallel()
	db := openStore(t, t.TempDir())
	a := activity.New(activity.Config{Store: db})
	for i := range 3000 {
		a.Add(agentapi.Activity{Kind: agentapi.ActivityOpened, Email: fmt.Sprint(i)})
		a.Add(agentapi.Activity{Kind: agentapi.ActivityTurnedAway, Email: fmt.Sprint(i)})
	}
	who := programs.Got(access.New(access.Config{Store: db, Activity: a}))(t)
	before := a.Version()
	if lines, err := db.Activity(10); err != nil || len(lines) != 0 {
		t.Errorf("%d lines before, %v", len(lines), err)
	}
	programs.Got(who.GoDark())(t)
	lines, err := db.Activity(5000)
	if err != nil || len(lines) != 1024+2 || lines[0].Kind != agentapi.ActivityDark || !lines[0].Owner {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if a.Version() == before {
		t.Error("nothing tells that there are more")
	}
	for _, l := range lines {
		if l.Kind == agentapi.ActivityTurnedAway && l.Count != 3000 {
			t.Errorf("%+v", l)
		}
	}
	// Dark again is no other decision, and neither is light that is.
	for range 2 {
		programs.Got(who.GoDark())(t)
	}
	for range 2 {
		programs.Must(t, who.LightUp())
	}
	if lines, err = db.Activity(5000); err != nil || len(lines) != 1024+3 || lines[0].Kind != agentapi.ActivityLight {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}

// 100,000 refused attempts push nothing out: they are a line of each kind an hour.
func TestFloodOfRefusals(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	db := openStore(t, t.TempDir())
	a := activity.New(activity.Config{Store: db, Now: func() time.Time { return now }})
	a.Add(agentapi.Activity{Kind: agentapi.ActivityApproved, Owner: true})
	a.Add(agentapi.Activity{Kind: agentapi.ActivityOpened})
	kinds := []string{agentapi.ActivityKnocked, agentapi.ActivityTurnedAway, agentapi.ActivityPasswordRefused}
	for range 4 {
		for i := range 25_000 {
			a.Add(agentapi.Activity{Kind: kinds[i%3], Email: fmt.Sprint(i, "@x"), App: fmt.Sprint("app ", i%7)})
			if i%5000 == 0 {
				if _, err := a.Lines(1); err != nil { // brings what waits to the store
					t.Fatal(err)
				}
			}
		}
		now = now.Add(time.Hour)
	}
	lines, err := a.Lines(store.MaxActivity)
	total := 0
	for _, l := range lines {
		total += l.Count
	}
	if err != nil || len(lines) != 2+4*len(kinds) || total != 100_000 {
		t.Errorf("%d lines that count %d, %v", len(lines), total, err)
	}
	if kept, err := db.Activity(store.MaxActivity); err != nil || len(kept) != len(lines) {
		t.Errorf("%d lines are kept, %v", len(kept), err)
	}
}

// Calls of a grant are counted until midnight, local time, over a restart too; a new
// grant's first one is a line although its client was here a moment ago.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Date(2026, 11, 20, 23, 50, 0, 0, time.Local)
	open := func() (*activity.Log, *store.Store) {
		db := openStore(t, dir)
		return activity.New(activity.Config{Store: db, Now: func() time.Time { return now }}), db
	}
	check := func(what string, a *activity.Log, grant string, calls int, at time.Time) {
		t.Helper()
		if n, last := a.Calls(grant); n != calls || !last.Equal(at) {
			t.Errorf("%s: %d calls of %s, the last %v; want %d, %v", what, n, grant, last, calls, at)
		}
	}
	a, db := open()
	one, other := visit("bob", "id-notes", "notes"), visit("bob", "id-notes", "notes")
	one.GrantID, one.ClientID = "g1", "c1"
	other.GrantID, other.ClientID = "g2", "c1"
	check("before", a, "g1", 0, time.Time{})
	for range 3 {
		a.Opened(one)
	}
	a.Opened(visit("bob", "id-notes", "notes")) // by browser
	check("at once", a, "g1", 3, now)
	a.Opened(other)
	lines := programs.Got(a.Lines(10))(t)
	if len(lines) != 3 || lines[0].Kind != agentapi.ActivityClient || lines[2].Kind != agentapi.ActivityClient {
		t.Errorf("%+v", lines)
	}
	programs.Run(t, a.Run)() // ends at once, and has kept them
	db.Close()

	a, _ = open()
	check("after a restart", a, "g1", 3, now)
	before := now
	now = now.Add(20 * time.Minute)
	check("after midnight", a, "g1", 0, before)
	a.Opened(one)
	check("the next day", a, "g1", 1, now)
	programs.Must(t, a.Clear())
	check("cleared", a, "g1", 0, time.Time{})
}

// What people open is counted, and nothing that programs do; anew once an hour and not
// with each visit. OW14.
func TestVisitsAreCountedOnceAnHour(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db := programs.Got(store.Open(dir))(t)
		defer db.Close()
		a := activity.New(activity.Config{Store: db})
		client := visit("bob", "id-notes", "Notes")
		client.GrantID, client.ClientID = "g1", "c1"
		for _, v := range []activity.Visit{client, visit("bob", "id-notes", "Notes"), visit("maya", "id-notes", "Notes"), visit("bob", "id-photos", "Photos")} {
			a.Opened(v)
		}
		defer programs.Run(t, a.Run)()
		check := func(when string, notes, photos int) {
			t.Helper()
			synctest.Wait()
			if got := a.Visits(); got["Notes"] != notes || got["Photos"] != photos {
				t.Errorf("%s: %v", when, got)
			}
		}
		check("at the start", 2, 1)
		a.Opened(visit("maya", "id-photos", "Photos"))
		time.Sleep(time.Minute)
		check("after another", 2, 1)
		time.Sleep(time.Hour)
		check("an hour later", 2, 2)
		programs.Must(t, a.Clear())
		check("cleared", 0, 0)
	})
}

// So many grants are counted, and no more: whoever called longest ago is forgotten.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	a := activity.New(activity.Config{Store: openStore(t, t.TempDir()), Now: func() time.Time { return now }})
	one := visit("bob", "id-notes", "notes")
	for i := range 1001 {
		now = now.Add(time.Millisecond)
		one.GrantID, one.ClientID = fmt.Sprint("g", i), fmt.Sprint("c", i)
		a.Opened(one)
	}
	for grant, want := range map[string]int{"g0": 0, "g1": 1, "g1000": 1} {
		if n, _ := a.Calls(grant); n != want {
			t.Errorf("%d calls of %s, want %d", n, grant, want)
		}
	}
}

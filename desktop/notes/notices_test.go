package notes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"porchlight/agent/agentapi"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

var compareNotes = cmp.AllowUnexported(verbs.Seen{})

func noticesOf(kind string, ids ...uint64) agentapi.OwnerState {
	s := owner.State(owner.Live("notes", "Diary", 3000))
	for _, id := range ids {
		s.Notices = append(s.Notices, agentapi.Notice{ID: id, Kind: kind, App: "notes", Text: fmt.Sprintf("Text %d.", id)})
	}
	return s
}

// An approval at a terminal has a kind of its own, so that nobody loses it with the
// changes of apps they do not want to hear of.
func TestApprovalsAtATerminalAreTold(t *testing.T) {
	t.Parallel()
	a := notes.NewAnnouncer(notes.Told{}, time.Now)
	c := a.Next(noticesOf(agentapi.NoticeApproved, 1), func() []string { return []string{agentapi.KindChanged} })
	if len(c.Show) != 1 || c.Show[0].Kind != agentapi.KindApproved || c.Show[0].Title != "An app was approved at a terminal" || c.Show[0].Body != "Text 1." {
		t.Errorf("%+v", c.Show)
	}
	a = notes.NewAnnouncer(notes.Told{}, time.Now)
	if c := a.Next(noticesOf(agentapi.NoticeApproved, 1), func() []string { return []string{agentapi.KindApproved} }); len(c.Show) != 0 {
		t.Errorf("a quiet kind: %+v", c.Show)
	}
	// What is quiet makes no storm of the rest.
	s := noticesOf("renamed", 1, 2, 3, 4)
	s.Notices = append(s.Notices, agentapi.Notice{ID: 5, Kind: agentapi.NoticeApproved})
	if got := said(notes.NewAnnouncer(notes.Told{}, time.Now).Next(s, func() []string { return []string{agentapi.KindChanged} })); !slices.Equal(got, []string{"+notice-5"}) {
		t.Errorf("beside four of a quiet kind: %v", got)
	}
}

func TestNoticesAreToldOnce(t *testing.T) {
	t.Parallel()
	a := notes.NewAnnouncer(notes.Told{Notice: 4}, time.Now)
	c := a.Next(noticesOf("renamed", 4, 5), loud)
	click := verbs.Action{Verb: verbs.Show, View: verbs.ViewApps}
	want := []notes.Note{{Key: "notice-5", Kind: agentapi.KindChanged, Title: "Diary", Body: "Text 5.", Click: click}}
	if diff := cmp.Diff(want, c.Show, compareNotes); diff != "" {
		t.Error(diff)
	}
	if got := step(a, noticesOf("renamed", 4, 5)); got != nil {
		t.Errorf("told again: %v", got)
	}
	if a.Told.Notice != 5 {
		t.Errorf("remembers %d", a.Told.Notice)
	}
	c = notes.NewAnnouncer(notes.Told{Notice: 4}, time.Now).Next(noticesOf("renamed", 4, 7, 6, 5), loud)
	if len(c.Show) != 1 || c.Show[0].Title != "3 changes" || c.Show[0].Body != "The last one: Text 7." {
		t.Errorf("three at once: %+v", c.Show)
	}
}

// A friend who accepts, comes in and opens what they were given is one notice, and so is
// who was let in by a click on their knock.
func TestAFriendWhoComesIsOneNotice(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	s := owner.State()
	comes := func(kind, app string) {
		s.Notices = append(s.Notices, agentapi.Notice{
			ID: uint64(len(s.Notices) + 1), At: now, Kind: kind, Text: kind + " " + app, Visitor: &agentapi.FirstVisit{AccountID: "bob", Email: "bob@example.com", App: app},
		})
	}
	a := notes.NewAnnouncer(notes.Told{Server: "own"}, func() time.Time { return now })
	comes(agentapi.NoticeAccepted, "")
	first := a.Next(s, loud).Show
	if len(first) != 1 || first[0].Title != "An invitation was accepted" || first[0].InPlace {
		t.Fatalf("%+v", first)
	}
	now = now.Add(4 * time.Second)
	comes(agentapi.NoticeFirstVisit, "Notes")
	comes(agentapi.NoticeFirstVisit, "Photos")
	if show := a.Next(s, loud).Show; len(show) != 1 || show[0].Key != first[0].Key || !show[0].InPlace || show[0].Title != "bob@example.com opened Notes and Photos for the first time" || len(show[0].Buttons) != 2 {
		t.Errorf("opened: %+v", show)
	}
	now = now.Add(5 * time.Minute)
	comes(agentapi.NoticeFirstVisit, "Diary")
	if c := a.Next(s, loud); len(c.Show) != 0 || c.Again != 0 {
		t.Errorf("minutes later: %+v", c)
	}
	now = now.Add(time.Hour)
	comes(agentapi.NoticeFirstVisit, "Wiki")
	if show := a.Next(s, loud).Show; len(show) != 1 || show[0].InPlace {
		t.Errorf("an hour later: %+v", show)
	}

	s = owner.State()
	a = notes.NewAnnouncer(notes.Told{Server: "own"}, func() time.Time { return now })
	s.Knocks = []agentapi.Knock{{ID: "k", AccountID: "bob", Email: "bob@example.com", App: "Notes", At: now}}
	if show := a.Next(s, loud).Show; len(show) != 1 {
		t.Fatalf("a knock: %+v", show)
	}
	s.Knocks = nil
	comes(agentapi.NoticeFirstVisit, "Notes")
	if got := step(a, s); !slices.Equal(got, []string{"-knock-k"}) {
		t.Errorf("let in: %v", got)
	}
	quiet := notes.NewAnnouncer(notes.Told{Server: "own"}, func() time.Time { return now })
	noKnocks := func() []string { return []string{agentapi.KindKnock} }
	knocks := owner.State()
	knocks.Knocks = []agentapi.Knock{{ID: "k", AccountID: "bob", Email: "bob@example.com", App: "Notes", At: now}}
	quiet.Next(knocks, noKnocks)
	if show := quiet.Next(s, noKnocks).Show; len(show) != 1 {
		t.Errorf("who knocked unheard is told when they come: %+v", show)
	}
	s.Notices[0].Visitor.AccountID = "carla"
	s.Notices[0].ID = 2
	if show := a.Next(s, loud).Show; len(show) != 1 {
		t.Errorf("somebody else: %+v", show)
	}
}

// What a program did through the capability comes with a way back.
func TestWhatAProgramDidCanBeUndone(t *testing.T) {
	t.Parallel()
	s := owner.State()
	s.Notices = []agentapi.Notice{{ID: 7, Kind: agentapi.ActivityInvited, Text: "wiki invited bob@example.com to Notes.", Undo: true}}
	c := notes.NewAnnouncer(notes.Told{}, time.Now).Next(s, loud)
	want := []notes.Note{{
		Key: "notice-7", Kind: agentapi.KindCapability, Title: "An app invited someone", Body: "wiki invited bob@example.com to Notes.",
		Buttons: []notes.Button{{Text: "Undo", Do: verbs.Action{Verb: verbs.Undo, Notice: 7, Text: "wiki invited bob@example.com to Notes."}}},
		Click:   verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople},
	}}
	if diff := cmp.Diff(want, c.Show, compareNotes); diff != "" {
		t.Error(diff)
	}
}

// A program that changes one thing after the other is told of a few times, and
// then by one note.
func TestNoticesThatKeepComing(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
	var told []notes.Note
	var again time.Duration
	for id := range uint64(200) { // in 20 seconds
		c := a.Next(noticesOf(agentapi.ActivityGiven, id+1), loud)
		told, again = append(told, c.Show...), c.Again
		now = now.Add(100 * time.Millisecond)
	}
	// Those with the same key take one another's place.
	if keys := said(notes.Changes{Show: told}); !slices.Equal(keys, []string{"+notice-1", "+notice-1", "+notice-1", "+notice-1"}) || told[3].Title != "91 changes" {
		t.Fatalf("%v, the last %+v", keys, told)
	}
	now = now.Add(again - 100*time.Millisecond)
	if show := a.Next(owner.State(), loud).Show; len(show) != 1 || show[0].Key != "notice-101" || show[0].Title != "109 changes" {
		t.Errorf("a minute after the first: %+v", show)
	}
}

// Sixty approvals at a terminal are one notice.
func TestManyApprovalsAreOneNotice(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
	keys, title := map[string]bool{}, ""
	var ids []uint64
	for id := range uint64(60) {
		ids = append(ids, id+1)
		for _, n := range a.Next(noticesOf(agentapi.NoticeApproved, ids...), loud).Show {
			keys[n.Key], title = true, n.Title
		}
		now = now.Add(50 * time.Millisecond)
	}
	if show := a.Next(noticesOf(agentapi.NoticeApproved, ids...), loud).Show; len(show) == 1 {
		keys[show[0].Key], title = true, show[0].Title
	}
	if len(keys) != 1 || title != "60 apps were approved at a terminal" {
		t.Errorf("%v, the last %q", keys, title)
	}
}

func TestEveryKindCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	s := owner.State(owner.Pending("paperless", "Paperless", 8010))
	for i, k := range []string{"renamed", agentapi.NoticeAccepted, agentapi.ActivityRemoved} {
		s.Notices = append(s.Notices, agentapi.Notice{ID: uint64(i + 1), Kind: k, Text: k})
	}
	s.Grants = []agentapi.Grant{{ID: "g", ClientName: "Pocket Notes", Email: "bob@example.com", CreatedAt: owner.Noon}}
	s.Trouble = "Out."
	kinds := func(off ...string) (kinds []string) {
		now := owner.Noon
		a := notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
		show := a.Next(s, func() []string { return off }).Show
		now = now.Add(time.Minute)
		for _, n := range append(show, a.Next(s, func() []string { return off }).Show...) {
			kinds = append(kinds, n.Kind)
		}
		slices.Sort(kinds)
		return kinds
	}
	all := kinds()
	if want := []string{"capability", "changed", "client", "connection", "invitation", "request"}; !slices.Equal(all, want) {
		t.Fatalf("told of %v, want %v", all, want)
	}
	for _, k := range all {
		if got := kinds(k); slices.Contains(got, k) || len(got) != len(all)-1 {
			t.Errorf("without %s: %v", k, got)
		}
	}
}

func TestConnectedAppsAreToldOnce(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	grant := func(id string, when time.Time) agentapi.Grant {
		return agentapi.Grant{ID: id, ClientName: "Client " + id, Email: "bob@example.com", CreatedAt: when}
	}
	s := owner.State()
	s.Grants = []agentapi.Grant{grant("old", owner.Noon.Add(-24*time.Hour)), grant("known", owner.Noon.Add(-time.Hour))}
	a := notes.NewAnnouncer(notes.Told{Grant: owner.Noon.Add(-time.Hour)}, func() time.Time { return now })
	if got := step(a, s); got != nil {
		t.Errorf("known ones: %v", got)
	}
	s.Grants = append(s.Grants, grant("new", owner.Noon))
	c := a.Next(s, loud)
	if len(c.Show) != 1 || c.Show[0].Key != "grant-new" || c.Show[0].Title != "Client new was let in" || !strings.HasPrefix(c.Show[0].Body, "bob@example.com allowed it") || c.Show[0].Click.View != verbs.ViewClients {
		t.Errorf("%+v", c.Show)
	}
	if buttons := c.Show[0].Buttons; len(buttons) != 2 || buttons[1].Do != (verbs.Action{Verb: verbs.RevokeGrant, Name: "new", Label: "Client new"}) {
		t.Errorf("its buttons: %+v", c.Show[0].Buttons)
	}
	// The owner's own is told as theirs.
	own := s
	own.Grants = append(own.Grants[:2:2], grant("mine", owner.Noon.Add(time.Second)))
	own.Grants[2].Email = own.Account.Email
	b := notes.NewAnnouncer(notes.Told{Grant: owner.Noon}, func() time.Time { return now })
	if c := b.Next(own, loud); len(c.Show) != 1 || !strings.HasPrefix(c.Show[0].Body, "You allowed it to open your apps") {
		t.Errorf("the owner's own: %+v", c.Show)
	}
	// One that was let in to some apps says to which.
	for want, apps := range map[string][]string{
		"open Notes and nothing else": {"Notes"}, "open Notes and Photos and nothing else": {"Notes", "Photos"},
		"open 3 apps and nothing else": {"a", "b", "c"},
	} {
		own.Grants[2].Apps = apps
		b := notes.NewAnnouncer(notes.Told{Grant: owner.Noon}, func() time.Time { return now })
		if c := b.Next(own, loud); len(c.Show) != 1 || !strings.Contains(c.Show[0].Body, want) {
			t.Errorf("for %v: %+v", apps, c.Show)
		}
	}
	if got := step(a, s); got != nil || !a.Told.Grant.Equal(owner.Noon) {
		t.Errorf("again: %v, remembers %v", got, a.Told.Grant)
	}
	// One that was revoked meanwhile is no news.
	s.Grants = s.Grants[:1]
	if got := step(a, s); got != nil {
		t.Errorf("revoked: %v", got)
	}
	for i := range 5 {
		s.Grants = append(s.Grants, grant(fmt.Sprint(i), owner.Noon.Add(time.Minute)))
	}
	now = owner.Noon.Add(time.Minute)
	if c := a.Next(s, loud); len(c.Show) != 1 || c.Show[0].Title != "5 connected apps were let in" || c.Show[0].Body != "Client 0, Client 1, Client 2 and 2 more." {
		t.Errorf("many: %+v", c.Show)
	}
	// The first start ever does not tell of what is long known.
	if got := step(notes.NewAnnouncer(notes.Told{}, func() time.Time { return owner.Noon.Add(48 * time.Hour) }), s); got != nil {
		t.Errorf("first start: %v", got)
	}
}

func TestTroubleIsToldWhenItLasts(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
	trouble, fine := owner.State(), owner.State()
	trouble.Trouble = "The relay cannot be reached."
	for i, c := range []struct {
		s     agentapi.OwnerState
		wait  time.Duration
		want  []string
		again time.Duration
	}{
		{trouble, 0, nil, time.Minute},
		{trouble, 20 * time.Second, nil, time.Minute - 20*time.Second},
		{fine, 20 * time.Second, nil, 0},
		{trouble, time.Minute, nil, time.Minute}, // it begins anew
		{trouble, time.Minute, []string{"+trouble"}, 0},
		{trouble, time.Minute, nil, 0},
		{fine, 0, []string{"-trouble"}, 0},
		{fine, 0, nil, 0},
	} {
		now = now.Add(c.wait)
		got := a.Next(c.s, loud)
		if keys := said(got); !slices.Equal(keys, c.want) || got.Again != c.again {
			t.Errorf("step %d: %v again in %v, want %v in %v", i, keys, got.Again, c.want, c.again)
		}
	}
}

// S1: another user of the computer is asked about in the notification, until the owner
// answered.
func TestAnotherUserAsks(t *testing.T) {
	t.Parallel()
	alice := agentapi.LocalUser{ID: "1001", Name: "alice", Standing: agentapi.UserAsks}
	s := owner.State()
	s.Users = []agentapi.LocalUser{alice}
	s.Notices = []agentapi.Notice{{ID: 8, Kind: agentapi.NoticeUser, User: "1001", Text: "A program of alice wants in."}}
	c := notes.NewAnnouncer(notes.Told{}, time.Now).Next(s, loud)
	want := []notes.Note{{
		Key: "notice-8", Kind: agentapi.KindRequest, Title: "Another user of this computer asks", Body: "A program of alice wants in.",
		Buttons: []notes.Button{
			{Text: "Allow", Do: verbs.Action{Verb: verbs.AllowUser, Name: "1001", Label: "alice"}},
			{Text: "No", Do: verbs.Action{Verb: verbs.DenyUser, Name: "1001", Label: "alice"}},
		},
		Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewSettings},
	}}
	if diff := cmp.Diff(want, c.Show, compareNotes); diff != "" {
		t.Error(diff)
	}
	s.Users[0].Standing = agentapi.UserDenied
	if c := notes.NewAnnouncer(notes.Told{}, time.Now).Next(s, loud); len(c.Show) != 1 || c.Show[0].Buttons != nil {
		t.Errorf("after the answer: %+v", c.Show)
	}
}

// A client's first use is told on the note that lets it in, within ten minutes of that and
// in its place; later ones are no note.
func TestFirstUseIsTold(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	s := owner.State()
	grant := agentapi.Grant{ID: "g", ClientName: "Pocket", ClientHost: "claude.ai", Email: s.Account.Email, CreatedAt: owner.Noon, Apps: []string{"Notes"}}
	show := func(a *notes.Announcer, used time.Duration) []notes.Note {
		one := grant
		if used > 0 {
			one.LastCall = owner.Noon.Add(used)
			now = one.LastCall
		}
		s.Grants = []agentapi.Grant{one}
		return a.Next(s, loud).Show
	}
	fresh := func() *notes.Announcer {
		now = owner.Noon
		return notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
	}
	const folded = "claude.ai may open Notes, and has just done so"
	a := fresh()
	first := show(a, 0)
	if len(first) != 1 || first[0].InPlace || first[0].Title != "claude.ai was let in" {
		t.Fatalf("let in: %+v", first)
	}
	if got := show(a, 0); len(got) != 0 {
		t.Errorf("not used: %+v", got)
	}
	if got := show(a, 5*time.Minute); len(got) != 1 || !got[0].InPlace || got[0].Key != first[0].Key || got[0].Title != folded || len(got[0].Buttons) != 2 {
		t.Errorf("used: %+v", got)
	}
	if got := show(a, 6*time.Minute); len(got) != 0 {
		t.Errorf("used again: %+v", got)
	}
	a = fresh()
	show(a, 0)
	if got := show(a, 11*time.Minute); len(got) != 0 {
		t.Errorf("used late: %+v", got)
	}
	if got := show(fresh(), time.Second); len(got) != 1 || got[0].InPlace || got[0].Title != folded {
		t.Errorf("used before it was told of: %+v", got)
	}
	grant.Apps = nil
	if got := show(fresh(), time.Second); len(got) != 1 || got[0].Title != "claude.ai was let in, and has just opened an app" {
		t.Errorf("let in to all: %+v", got)
	}
}

// Weakness: a client that was let in to one app, and then to all, was told of once: as one
// that opens nothing else.
// Checked: there is a note each time that it may open more, and none when it may open less.
func TestAClientThatOpensMoreIsTold(t *testing.T) {
	t.Parallel()
	s := owner.State()
	now := owner.Noon
	a := notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
	for _, tt := range []struct {
		apps []string
		told string
	}{
		{[]string{"Notes"}, "Notes and nothing else"},
		{[]string{"Notes"}, ""},
		{[]string{"Notes", "Photos"}, "Photos and nothing else"},
		{[]string{"Diary"}, ""},
		{nil, "You allowed it to open your apps, as you."},
		{nil, ""},
		{[]string{"Notes"}, ""},
	} {
		now = now.Add(20 * time.Hour)
		s.Grants = []agentapi.Grant{{ID: "g", ClientName: "Pocket", Email: s.Account.Email, CreatedAt: owner.Noon.Add(19 * time.Hour), Apps: tt.apps}}
		got := a.Next(s, loud).Show
		if (len(got) == 1) != (tt.told != "") || len(got) > 0 && !strings.Contains(got[0].Body, tt.told) {
			t.Errorf("opening %q: %+v", tt.apps, got)
		}
	}
}

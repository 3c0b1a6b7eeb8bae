package desktop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"porchlight/agent/agentapi"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

var compareNotes = cmp.AllowUnexported(note{}, verbs.Action{}, verbs.Seen{}, button{})

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
	a := newAnnouncer(told{}, time.Now)
	c := a.next(noticesOf(agentapi.NoticeApproved, 1), func() quiet { return quiet{kindChanged: true} })
	if len(c.show) != 1 || c.show[0].kind != kindApproved || c.show[0].title != "Diary" || c.show[0].body != "Text 1." {
		t.Errorf("%+v", c.show)
	}
	a = newAnnouncer(told{}, time.Now)
	if c := a.next(noticesOf(agentapi.NoticeApproved, 1), func() quiet { return quiet{kindApproved: true} }); len(c.show) != 0 {
		t.Errorf("a quiet kind: %+v", c.show)
	}
}

func TestNoticesAreToldOnce(t *testing.T) {
	t.Parallel()
	a := newAnnouncer(told{notice: 4}, time.Now)
	c := a.next(noticesOf("renamed", 4, 6, 5), loud)
	click := verbs.Action{Verb: verbs.Show, View: verbs.ViewApps}
	want := []note{
		{key: "notice-5", kind: kindChanged, title: "Diary", body: "Text 5.", click: click},
		{key: "notice-6", kind: kindChanged, title: "Diary", body: "Text 6.", click: click},
	}
	if diff := cmp.Diff(want, c.show, compareNotes); diff != "" {
		t.Error(diff)
	}
	if got := step(a, noticesOf("renamed", 4, 6, 5)); got != nil {
		t.Errorf("told again: %v", got)
	}
	if a.told.notice != 6 {
		t.Errorf("remembers %d", a.told.notice)
	}
	if got := step(a, noticesOf("renamed", 4, 5, 6, 7, 8, 9, 10)); !slices.Equal(got, []string{"+notices"}) {
		t.Errorf("four at once: %v", got)
	}
}

// What a program did through the capability comes with a way back.
func TestWhatAProgramDidCanBeUndone(t *testing.T) {
	t.Parallel()
	s := owner.State()
	s.Notices = []agentapi.Notice{{ID: 7, Kind: agentapi.ActivityInvited, Text: "wiki invited bob@example.com to Notes.", Undo: true}}
	c := newAnnouncer(told{}, time.Now).next(s, loud)
	want := []note{{
		key: "notice-7", kind: kindCapability, title: "An app invited someone", body: "wiki invited bob@example.com to Notes.",
		buttons: []button{{"Undo", verbs.Action{Verb: verbs.Undo, Notice: 7, Text: "wiki invited bob@example.com to Notes."}}},
		click:   verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople},
	}}
	if diff := cmp.Diff(want, c.show, compareNotes); diff != "" {
		t.Error(diff)
	}
}

// A program that changes one thing after the other is told of a few times, and
// then by one note.
func TestNoticesThatKeepComing(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := newAnnouncer(told{}, func() time.Time { return now })
	keys := map[string]int{}
	for id := range uint64(100) {
		for _, n := range a.next(noticesOf(agentapi.ActivityGiven, id+1), loud).show {
			keys[strings.TrimRight(n.key, "0123456789")]++
		}
		now = now.Add(100 * time.Millisecond)
	}
	if keys["notice-"] != maxAMinute || keys[keyNotices] != 100-maxAMinute {
		t.Errorf("told %v", keys) // those with the same key take one another's place
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
	kinds := func(off ...kind) (kinds []string) {
		now := owner.Noon
		a := newAnnouncer(told{}, func() time.Time { return now })
		q := quiet{}
		for _, k := range off {
			q[k] = true
		}
		show := a.next(s, func() quiet { return q }).show
		now = now.Add(lasting)
		for _, n := range append(show, a.next(s, func() quiet { return q }).show...) {
			kinds = append(kinds, string(n.kind))
		}
		slices.Sort(kinds)
		return kinds
	}
	all := kinds()
	if want := []string{"capability", "changed", "client", "connection", "invitation", "request"}; !slices.Equal(all, want) {
		t.Fatalf("told of %v, want %v", all, want)
	}
	for _, k := range all {
		if got := kinds(kind(k)); slices.Contains(got, k) || len(got) != len(all)-1 {
			t.Errorf("without %s: %v", k, got)
		}
	}
}

func TestConnectedAppsAreToldOnce(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	grant := func(id string, at time.Time) agentapi.Grant {
		return agentapi.Grant{ID: id, ClientName: "Client " + id, Email: "bob@example.com", CreatedAt: at}
	}
	s := owner.State()
	s.Grants = []agentapi.Grant{grant("old", owner.Noon.Add(-stale)), grant("known", owner.Noon.Add(-time.Hour))}
	a := newAnnouncer(told{grant: owner.Noon.Add(-time.Hour)}, func() time.Time { return now })
	if got := step(a, s); got != nil {
		t.Errorf("known ones: %v", got)
	}
	s.Grants = append(s.Grants, grant("new", owner.Noon))
	c := a.next(s, loud)
	if len(c.show) != 1 || c.show[0].key != "grant-new" || c.show[0].title != "Client new was let in" || !strings.HasPrefix(c.show[0].body, "bob@example.com allowed it") || c.show[0].click.View != verbs.ViewClients {
		t.Errorf("%+v", c.show)
	}
	if buttons := c.show[0].buttons; len(buttons) != 2 || buttons[1].do != (verbs.Action{Verb: verbs.RevokeGrant, Name: "new", Label: "Client new"}) {
		t.Errorf("its buttons: %+v", c.show[0].buttons)
	}
	// The owner's own is told as theirs.
	own := s
	own.Grants = append(own.Grants[:2:2], grant("mine", owner.Noon.Add(time.Second)))
	own.Grants[2].Email = own.Account.Email
	b := newAnnouncer(told{grant: owner.Noon}, func() time.Time { return now })
	if c := b.next(own, loud); len(c.show) != 1 || !strings.HasPrefix(c.show[0].body, "You allowed it to open your apps") {
		t.Errorf("the owner's own: %+v", c.show)
	}
	if got := step(a, s); got != nil || !a.told.grant.Equal(owner.Noon) {
		t.Errorf("again: %v, remembers %v", got, a.told.grant)
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
	if c := a.next(s, loud); len(c.show) != 1 || c.show[0].title != "5 connected apps were let in" || c.show[0].body != "Client 0, Client 1, Client 2 and 2 more." {
		t.Errorf("many: %+v", c.show)
	}
	// The first start ever does not tell of what is long known.
	if got := step(newAnnouncer(told{}, func() time.Time { return owner.Noon.Add(2 * stale) }), s); got != nil {
		t.Errorf("first start: %v", got)
	}
}

func TestTroubleIsToldWhenItLasts(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := newAnnouncer(told{}, func() time.Time { return now })
	trouble, fine := owner.State(), owner.State()
	trouble.Trouble = "The relay cannot be reached."
	for i, c := range []struct {
		s     agentapi.OwnerState
		wait  time.Duration
		want  []string
		again time.Duration
	}{
		{trouble, 0, nil, lasting},
		{trouble, 20 * time.Second, nil, lasting - 20*time.Second},
		{fine, 20 * time.Second, nil, 0},
		{trouble, lasting, nil, lasting}, // it begins anew
		{trouble, lasting, []string{"+trouble"}, 0},
		{trouble, lasting, nil, 0},
		{fine, 0, []string{"-trouble"}, 0},
		{fine, 0, nil, 0},
	} {
		now = now.Add(c.wait)
		got := a.next(c.s, loud)
		if keys := said(got); !slices.Equal(keys, c.want) || got.again != c.again {
			t.Errorf("step %d: %v again in %v, want %v in %v", i, keys, got.again, c.want, c.again)
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
	c := newAnnouncer(told{}, time.Now).next(s, loud)
	want := []note{{
		key: "notice-8", kind: kindRequest, title: "Another user of this computer asks", body: "A program of alice wants in.",
		buttons: []button{
			{"Allow", verbs.Action{Verb: verbs.AllowUser, Name: "1001", Label: "alice"}},
			{"No", verbs.Action{Verb: verbs.DenyUser, Name: "1001", Label: "alice"}},
		},
		click: verbs.Action{Verb: verbs.Show, View: verbs.ViewSettings},
	}}
	if diff := cmp.Diff(want, c.show, compareNotes); diff != "" {
		t.Error(diff)
	}
	s.Users[0].Standing = agentapi.UserDenied
	if c := newAnnouncer(told{}, time.Now).next(s, loud); len(c.show) != 1 || c.show[0].buttons != nil {
		t.Errorf("after the answer: %+v", c.show)
	}
}

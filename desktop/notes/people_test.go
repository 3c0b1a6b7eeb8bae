package notes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

func knocking(n int) agentapi.OwnerState {
	s := owner.State()
	for i := range n {
		s.Knocks = append(s.Knocks, agentapi.Knock{ID: fmt.Sprint(i), AccountID: fmt.Sprintf("acc%d", i), Email: fmt.Sprintf("p%d@example.com", i), App: "Notes", At: owner.Noon, Known: true})
	}
	return s
}

// A knock is asked once, answered by its buttons, and taken back when it is over.
func TestKnocksAreAsked(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := notes.NewAnnouncer(notes.Told{Server: "own"}, func() time.Time { return now })
	c := a.Next(knocking(1), loud)
	if len(c.Show) != 1 || c.Show[0].Title != "p0@example.com would like Notes" {
		t.Fatalf("%+v", c.Show)
	}
	for i, want := range []string{agentapi.KnockToday, agentapi.KnockAlways, agentapi.KnockNo} {
		if do := c.Show[0].Buttons[i].Do; do != (verbs.Action{Verb: verbs.Answer, Name: "0", Person: "acc0", Label: "p0@example.com", App: "Notes", Text: want}) {
			t.Errorf("button %d does %+v", i, do)
		}
	}
	if got := step(a, knocking(1)); got != nil {
		t.Errorf("told again: %v", got)
	}
	if got := step(a, knocking(0)); !slices.Equal(got, []string{"-knock-0"}) {
		t.Errorf("answered elsewhere: %v", got)
	}
	// Strangers cannot fill the screen: one note for all, at most once a minute.
	if got := step(a, knocking(12)); !slices.Equal(got, []string{"+knocks"}) {
		t.Errorf("many: %v", got)
	}
	now = now.Add(10 * time.Second)
	if c := a.Next(knocking(13), loud); len(c.Show) != 0 || c.Again != 50*time.Second {
		t.Errorf("one more, too soon: %+v", c)
	}
	now = now.Add(time.Minute)
	if c := a.Next(knocking(13), loud); len(c.Show) != 1 || c.Show[0].Title != "13 people would like your apps" {
		t.Errorf("later: %+v", c.Show)
	}
	if got := step(a, knocking(0)); !slices.Equal(got, []string{"-knocks"}) {
		t.Errorf("over: %v", got)
	}
}

// What is about one person names them, and offers what one does next.
func TestNoticesAboutSomebody(t *testing.T) {
	t.Parallel()
	s := owner.State()
	s.Notices = []agentapi.Notice{
		{ID: 1, At: owner.Noon, Kind: agentapi.NoticeEnded, Text: "…", Ended: &agentapi.EndedShare{AccountID: "lena", Email: "lena@example.com", Apps: []string{"Photos"}, Until: owner.Noon.Add(-12 * time.Hour), Closed: 1}},
		{ID: 2, At: owner.Noon, Kind: agentapi.NoticeFirstVisit, Text: "…", Visitor: &agentapi.FirstVisit{AccountID: "bob", Email: "bob@example.com", App: "Notes"}},
	}
	alone := owner.State()
	alone.Notices = []agentapi.Notice{{ID: 3, At: owner.Noon, Kind: agentapi.NoticeEnded, App: "notes", Text: "Notes was approved until 18:00."}}
	fresh := func() *notes.Announcer {
		return notes.NewAnnouncer(notes.Told{Server: "own"}, func() time.Time { return owner.Noon })
	}
	sender := owner.State()
	sender.Apps = []agentapi.OwnerApp{{AppSummary: agentapi.AppSummary{Name: "notes", Label: "Notes", Status: agentapi.StatusLive}}}
	sender.Notices = []agentapi.Notice{{ID: 4, At: owner.Noon, Kind: agentapi.ActivitySenderEnded, App: "notes", Text: "Notes ended for GitHub. It was until yesterday."}}
	show := slices.Concat(fresh().Next(s, loud).Show, fresh().Next(alone, loud).Show, fresh().Next(sender, loud).Show)
	if len(show) != 4 {
		t.Fatalf("%+v", show)
	}
	if n := show[2]; n.Title != "An approval has ended" || n.Body != "Notes was approved until 18:00." || n.Kind != agentapi.KindEnded || n.Click.View != verbs.ViewApps || len(n.Buttons) != 0 {
		t.Errorf("%+v", n)
	}
	if n := show[3]; !strings.Contains(n.Title, "Notes") || n.Body != "Notes ended for GitHub. It was until yesterday." || n.Kind != agentapi.KindEnded || n.Click.View != verbs.ViewApps {
		t.Errorf("%+v", n)
	}
	if n := show[0]; n.Title != "Photos ended for lena@example.com" || n.Body != "It was until yesterday. 1 connection closed." || n.Kind != agentapi.KindEnded ||
		n.Buttons[0].Do != (verbs.Action{Verb: verbs.Prolong, Person: "lena", Label: "lena@example.com", App: "Photos"}) {
		t.Errorf("%+v", n)
	}
	if n := show[1]; n.Title != "bob@example.com opened Notes for the first time" || n.Body != "At 12:00." || n.Kind != agentapi.KindVisit ||
		n.Buttons[1].Do != (verbs.Action{Verb: verbs.Disconnect, Person: "bob", Label: "bob@example.com", App: "Notes"}) {
		t.Errorf("%+v", n)
	}
}

// Shares that end at the same moment offer a week more each, while they are few.
func TestSharesThatEndTogether(t *testing.T) {
	t.Parallel()
	ended := func(n int) []notes.Note {
		s := owner.State()
		for id := range n {
			s.Notices = append(s.Notices, agentapi.Notice{ID: uint64(id + 1), At: owner.Noon, Kind: agentapi.NoticeEnded, Text: "…", Ended: &agentapi.EndedShare{AccountID: fmt.Sprint(id), Email: "lena@example.com", Apps: []string{"Photos"}, Until: owner.Noon}})
		}
		return notes.NewAnnouncer(notes.Told{Server: "own"}, func() time.Time { return owner.Noon }).Next(s, loud).Show
	}
	show := ended(2)
	if len(show) != 2 {
		t.Fatalf("two: %+v", show)
	}
	for id, n := range show {
		if n.Title != "Photos ended for lena@example.com" || n.Buttons[0].Do != (verbs.Action{Verb: verbs.Prolong, Person: fmt.Sprint(id), Label: "lena@example.com", App: "Photos"}) {
			t.Errorf("%+v", n)
		}
	}
	if show := ended(10); len(show) != 1 || show[0].Title != "10 changes" {
		t.Errorf("ten: %+v", show)
	}
}

// A new browser of the owner's is told in one sentence, with its place and a way to end it.
func TestNewBrowserIsSaidOnce(t *testing.T) {
	t.Parallel()
	s := owner.State()
	s.Notices = []agentapi.Notice{{ID: 1, At: owner.Noon, Kind: agentapi.NoticeBrowser, Text: "A browser at 203.0.113.5 signed in as you.", Undo: true}}
	show := notes.NewAnnouncer(notes.Told{Server: "own"}, func() time.Time { return owner.Noon }).Next(s, loud).Show
	if len(show) != 1 || show[0].Title != "A browser at 203.0.113.5 signed in as you" || show[0].Kind != agentapi.KindClient || show[0].Buttons[0].Text != "That was not me" {
		t.Errorf("%+v", show)
	}
}

// A new passkey of the owner's is told with a way to say that it was not them.
func TestNewPasskeyIsSaid(t *testing.T) {
	t.Parallel()
	s := owner.State()
	s.Notices = []agentapi.Notice{{ID: 1, At: owner.Noon, Kind: agentapi.NoticePasskey, Text: "A passkey was added to your account: “Mac”.", Undo: true}}
	show := notes.NewAnnouncer(notes.Told{Server: "own"}, func() time.Time { return owner.Noon }).Next(s, loud).Show
	if len(show) != 1 || show[0].Title != "A passkey was added to your account: “Mac”" || show[0].Kind != agentapi.KindClient || show[0].Buttons[0].Text != "That was not me" || show[0].Buttons[0].Do.Notice != 1 {
		t.Errorf("%+v", show)
	}
}

// Connecting and disconnecting are told with the address, and neither at a start.
func TestConnectingIsTold(t *testing.T) {
	t.Parallel()
	away := owner.State(owner.Live("notes", "Notes", 3000))
	away.Account.Local, away.Account.Host, away.Account.AuthURL = false, "maya.porch.example", "https://control.porch.example"
	a := notes.NewAnnouncer(notes.Told{}, time.Now)
	if got := step(a, owner.State()); got != nil {
		t.Errorf("at the first start: %v", got)
	}
	c := a.Next(away, loud)
	if len(c.Show) != 1 || c.Show[0].Body != "Its address is maya.porch.example." || c.Show[0].Buttons[1].Do.View != verbs.ViewInvite {
		t.Errorf("%+v", c.Show)
	}
	if got := step(notes.NewAnnouncer(a.Told, time.Now), away); got != nil {
		t.Errorf("at the next start: %v", got)
	}
	if c := a.Next(owner.State(), loud); len(c.Show) != 1 || c.Show[0].Title != "This computer is disconnected" {
		t.Errorf("%+v", c.Show)
	}
}

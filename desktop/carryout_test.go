package desktop

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

// What is clicked is what is done, and nothing else. Of an approval, all that the owner saw
// is sent: the agent compares it.
func TestCarryOut(t *testing.T) {
	t.Parallel()
	request := owner.Pending("notes", "Notes", 3000)
	const seen = `{"label":"Notes","localPort":3000,"program":"python3","user":"maya"`
	for act, want := range map[verbs.Action]string{
		verbs.ApproveOf(request):                             "POST /owner/apps/notes/approve" + seen + "}",
		verbs.TodayOf(request):                               "POST /owner/apps/notes/approve" + seen + `,"until":"today"}`,
		verbs.AloneOf(request):                               "POST /owner/apps/notes/approve" + seen + `,"alone":true}`,
		{Verb: verbs.Deny, Name: "notes"}:                    "POST /owner/apps/notes/deny",
		{Verb: verbs.Pause, Name: "notes", Label: "Notes"}:   "POST /owner/apps/notes/pause",
		{Verb: verbs.Resume, Name: "notes", Label: "Notes"}:  "POST /owner/apps/notes/resume",
		{Verb: verbs.Revoke, Name: "notes", Label: "Notes"}:  "POST /owner/apps/notes/revoke",
		{Verb: verbs.RevokeGrant, Name: "g1", Label: "Deck"}: "POST /owner/grants/g1/revoke",
		verbs.AllowOf(agentapi.LocalUser{ID: "33"}):          "POST /owner/users/33/allow",
		verbs.DenyOf(agentapi.LocalUser{ID: "33"}):           "POST /owner/users/33/deny",
		verbs.OfGroup(agentapi.Group{ID: "f1"}, "Notes"):     `POST /owner/groups/f1/grant{"app":"Notes"}`,
		verbs.OfGroup(family, "Notes"):                       `POST /owner/groups/f1/withdraw{"app":"Notes"}`,
		{Verb: verbs.Dark}:                                   "POST /owner/dark",
		{Verb: verbs.Light}:                                  "DELETE /owner/dark",
		{Verb: verbs.Undo, Notice: 7}:                        "POST /owner/notices/7/undo",
	} {
		agent := startAgent(t, map[string]any{"POST /owner/apps/notes/approve": approved})
		a := appOf(agent)
		if _, err := a.does(t, act); err != nil || !slices.Equal(agent.asked(), []string{want}) {
			t.Errorf("%s: the agent was asked to %q, %v", act.Verb, agent.asked(), err)
		}
	}
}

// appOf is one that knows its agent, and of these apps.
func appOf(a *fakeAgent, apps ...agentapi.OwnerApp) *app {
	return &app{client: a.Client, state: owner.State(apps...), known: true, log: slog.New(slog.DiscardHandler)}
}

// does carries out what was clicked.
func (a *app) does(t *testing.T, act verbs.Action) (notes.Note, error) {
	t.Helper()
	return a.carryOut(t.Context(), act)
}

var family = agentapi.Group{ID: "f1", Name: "Family", Apps: []string{"Notes"}, Until: map[string]time.Time{"Notes": owner.Noon}}

// What a group was given or had taken away is undone as it was, with its end.
func TestGroupUndo(t *testing.T) {
	t.Parallel()
	until := owner.Noon.Add(time.Hour) // changed since the menu was made
	agent := startAgent(t, map[string]any{"POST /owner/groups/f1/withdraw": agentapi.GroupChanged{OK: true, Until: &until}})
	a := appOf(agent)
	n, err := a.does(t, verbs.OfGroup(family, "Notes"))
	if err != nil || n.Title != "Family can't open Notes any more" {
		t.Fatalf("%+v, %v", n, err)
	}
	if n, err = a.does(t, n.Buttons[0].Do); err != nil || n.Title != "Family may open Notes" || n.Buttons[0].Do.Verb != verbs.TakeGroup {
		t.Errorf("%+v, %v", n, err)
	}
	if asked := agent.asked(); len(asked) != 2 || asked[1] != `POST /owner/groups/f1/grant{"app":"Notes","until":"`+until.Format(time.RFC3339)+`"}` {
		t.Errorf("the agent was asked to %q", asked)
	}
}

var approved = agentapi.Approved{Publication: agentapi.Publication{Status: agentapi.StatusLive, URL: "https://notes.maya.localhost"}, AppHealth: &agentapi.AppHealth{}}

// What is told of an approval is of the request that was seen.
func TestApproved(t *testing.T) {
	t.Parallel()
	agent := startAgent(t, map[string]any{"POST /owner/apps/notes/approve": approved})
	request := owner.Pending("notes", "Notes", 3000)
	a := appOf(agent, request)
	if n, err := a.does(t, verbs.ApproveOf(request)); err != nil || n.Body != "notes.maya.localhost. Only you can open it." || n.Title != "Notes is on" {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := a.does(t, verbs.TodayOf(request)); err != nil || n.Title != "Notes is on until midnight" {
		t.Errorf("for today: %+v, %v", n, err)
	}
}

// Weakness: where the second of several apps could not be given, the owner was told that
// nothing was, and the first was given all the same.
func TestProlongSaysWhatWasGiven(t *testing.T) {
	t.Parallel()
	act := verbs.Action{Verb: verbs.Prolong, Person: "lena", Label: "lena@example.com", App: "Photos\nWiki\nNotes"}
	for most, want := range []struct{ title, body string }{
		{},
		{"may open Photos until", "Not given: Wiki and Notes. This computer has given out as many apps as it can."},
		{"may open Photos and Wiki until", "Not given: Notes. This computer has given out as many apps as it can."},
		{"may open Photos, Wiki and Notes until", ""},
	} {
		given := 0
		agent := startAgent(t, map[string]any{"POST /owner/people/grant": func(string) any {
			if given == most {
				return agentapi.Errorf(agentapi.CodeInvalid, "This computer has given out as many apps as it can. Withdraw some that are not used any more.")
			}
			given++
			return nil
		}})
		a := appOf(agent)
		done, err := a.does(t, act)
		if (err != nil) != (most == 0) {
			t.Errorf("%d given: %v", most, err)
		}
		if !strings.Contains(done.Title, want.title) || !strings.HasPrefix(done.Body, want.body) || (want.body == "") != (done.Body == "") {
			t.Errorf("%d given: it says %q, %q", most, done.Title, done.Body)
		}
	}
}

// A yes that is undone leaves what somebody was invited to before they knocked.
func TestUndoOfAYesLeavesEarlierInvitations(t *testing.T) {
	t.Parallel()
	for _, left := range [][]string{nil, {"Photos"}} {
		bob := agentapi.Person{AccountID: "bob", Status: agentapi.PersonPending, Apps: left}
		agent := startAgent(t, map[string]any{"POST /owner/people/grant": agentapi.PersonChanged{Person: bob}})
		a := appOf(agent)
		want := []string{`POST /owner/people/grant{"accountId":"bob","app":"Notes","granted":false}`}
		if left == nil {
			want = append(want, `POST /owner/people/revoke{"accountId":"bob"}`)
		}
		act := verbs.Action{Verb: verbs.TakeBack, Person: "bob", Label: "bob@example.com", App: "Notes", Name: agentapi.PersonPending}
		if _, err := a.does(t, act); err != nil || !slices.Equal(agent.asked(), want) {
			t.Errorf("invited to %v: the agent was asked to %q, %v", left, agent.asked(), err)
		}
	}
}

// Who gave an app to somebody is told its address, and can send the link or undo it.
func TestGiven(t *testing.T) {
	t.Parallel()
	agent := startAgent(t, nil)
	given := verbs.GiveOf("bob", "bob@example.com", "Notes")
	notes := owner.Live("notes", "Notes", 3000)
	undo := verbs.Action{Verb: verbs.TakeBack, Person: "bob", Label: "bob@example.com", App: "Notes"}
	for host, want := range map[string][]verbs.Action{
		notes.Host: {verbs.CopyOf(notes, notes.Host), undo},
		"":         {undo}, // it has none so far
	} {
		notes.Host = host
		a := appOf(agent, owner.Live("wiki", "Wiki", 3001), notes)
		n, err := a.does(t, given)
		var offered []verbs.Action
		for _, b := range n.Buttons {
			offered = append(offered, b.Do)
		}
		if err != nil || n.Title != "bob@example.com may open Notes" || n.Body != "notes.maya.localhost:8443" || !slices.Equal(offered, want) {
			t.Errorf("%q, %q, offers %+v, %v", n.Title, n.Body, offered, err)
		}
	}
}

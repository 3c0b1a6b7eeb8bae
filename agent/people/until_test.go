package people_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// owners is a person as the owner is shown them.
func (r *rig) owners(t *testing.T, email string) agentapi.Person {
	t.Helper()
	all := programs.Got(r.owner.People(t.Context()))(t)
	i := slices.IndexFunc(all.Members, func(p agentapi.Person) bool { return p.Email == email })
	if i < 0 {
		t.Fatalf("%s is not among %+v", email, all.Members)
	}
	return all.Members[i]
}

// gives has the owner give bob an app until then.
func (r *rig) gives(t *testing.T, id, app, until string) agentapi.Person {
	t.Helper()
	changed, err := r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: app, Granted: true, Until: until})
	programs.Must(t, err)
	return changed.Person
}

// soon gives an app with an end that comes soon: a later one where a busy machine lets it
// come before it is given, which is refused.
func (r *rig) soon(t *testing.T, id, app string) (end time.Time) {
	t.Helper()
	for away := 3 * time.Second; ; away *= 2 {
		changed, err := r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: app, Granted: true, Until: away.String()})
		if err == nil {
			return changed.Person.Until[app]
		}
		if agentapi.CodeOf(err) != agentapi.CodeInvalid || away > time.Minute {
			t.Fatal(err)
		}
	}
}

// TestUntil: the owner gives an end and takes it away again; programs neither see one
// nor change it, and a rename does not either.
func TestUntil(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes", "Wiki")
	at := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	if p := r.gives(t, id, "Notes", at.Format(time.RFC3339)); len(p.Until) != 1 || !p.Until["Notes"].Equal(at) || len(p.Apps) != 2 {
		t.Errorf("answered %+v", p)
	}
	ends := func(what, label string, want time.Time) {
		t.Helper()
		p := r.owners(t, bobMail)
		if want.IsZero() && len(p.Until) == 0 || p.Until[label].Equal(want) && len(p.Until) == 1 {
			return
		}
		t.Errorf("%s: %+v, want %v", what, p, want)
	}
	ends("given", "Notes", at)

	capability := r.capability(t)
	for _, ask := range []struct{ method, path, body string }{
		{"GET", "/people", ""},
		{"POST", "/people/grant", fmt.Sprintf(`{"accountId":%q,"app":"Notes","granted":true}`, id)},
		{"POST", "/people/grant", fmt.Sprintf(`{"accountId":%q,"app":"Notes","granted":true,"until":"never"}`, id)},
		{"POST", "/people/grant", fmt.Sprintf(`{"accountId":%q,"app":"Notes","granted":true,"until":17}`, id)},
		{"POST", "/people/invite", `{"email":"bob@example.com","apps":["Notes"]}`},
		{"POST", "/people/invite", `{"email":"bob@example.com","apps":["Notes"],"until":"2040-01-01T00:00:00Z"}`},
	} {
		got := r.call(t, ask.method, ask.path, ask.body, capability)
		if text := fmt.Sprint(got.body); got.status != http.StatusOK || strings.Contains(text, "until") || strings.Contains(text, "ended") {
			t.Errorf("%s %s: HTTP %d %v", ask.path, ask.body, got.status, got.body)
		}
		ends(ask.path+" "+ask.body, "Notes", at)
	}

	programs.Got(r.app.Publish(t.Context(), agentapi.PublishRequest{Name: "notes", Label: "Diary", LocalPort: 8000}))(t)
	ends("renamed", "Diary", at)
	later := at.Add(24 * time.Hour)
	r.gives(t, id, "Diary", later.Format(time.RFC3339))
	ends("prolonged", "Diary", later)
	for _, bad := range []string{
		"yesterday", "2020-01-31T18:00:00Z", "2100-01-31T18:00:00Z", "0s", "-2h", "7days", "99999d", "2030-02-31", strings.Repeat("9", 5000),
	} {
		_, err := r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Wiki", Granted: true, Until: bad})
		_, err2 := r.owner.Invite(t.Context(), agentapi.InviteRequest{Email: bobMail, Apps: []string{"Wiki"}, Until: bad})
		for _, err := range []error{err, err2} {
			if agentapi.CodeOf(err) != agentapi.CodeInvalid || !strings.HasSuffix(err.Error(), ".") || len(err.Error()) > 300 {
				t.Errorf("until %q: %v", bad, err)
			}
		}
		ends("after a refusal", "Diary", later)
	}
	if p := r.gives(t, id, "Diary", agentapi.UntilNever); len(p.Until) != 0 {
		t.Errorf("always: %+v", p)
	}
	ends("always", "", time.Time{})

	// While the app is off its end can be changed, and it cannot be given.
	programs.Got(r.app.Unpublish(t.Context(), "notes"))(t)
	r.gives(t, id, "Diary", later.Format(time.RFC3339))
	ends("given an end while it is off", "Diary", later)
	for _, req := range []agentapi.AccessRequest{
		{AccountID: id, App: "Diary", Granted: true},
		{AccountID: r.owners(t, ownerMail).AccountID, App: "Diary", Granted: true, Until: "2h"},
	} {
		if _, err := r.owner.SetAccess(t.Context(), req); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("%+v: %v", req, err)
		}
	}
	if _, err := r.app.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Diary", Granted: true, Until: "2h"}); agentapi.CodeOf(err) != agentapi.CodeInvalid {
		t.Errorf("a program gives what is off: %v", err)
	}
}

// TestUntilSurvivesUndo: what is taken away and given back has the end it had.
func TestUntilSurvivesUndo(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes", "Wiki")
	at := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	r.gives(t, id, "Notes", at.Format(time.RFC3339))
	has := func(what string) {
		t.Helper()
		if p := r.owners(t, bobMail); p.Status != agentapi.PersonActive || !p.Until["Notes"].Equal(at) || len(p.Apps) != 2 {
			t.Errorf("%s: %+v", what, p)
		}
	}
	r.held(t, id, longHold)
	programs.Got(r.owner.UndoHeld(t.Context(), agentapi.HeldChange{AccountID: id}))(t)
	has("a removal undone")
	off := agentapi.AccessRequest{AccountID: id, App: "Notes", HoldSeconds: longHold}
	if changed, err := r.owner.SetAccess(t.Context(), off); err != nil || len(changed.Person.Until) != 0 {
		t.Fatalf("%+v, %v", changed, err)
	}
	if p := r.owners(t, bobMail); len(p.Until) != 0 || len(p.Apps) != 1 {
		t.Errorf("withdrawn: %+v", p)
	}
	programs.Got(r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes", Granted: true}))(t)
	has("switched on again")
	programs.Got(r.app.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes"}))(t)
	n := r.last(t)
	if err := r.owner.UndoNotice(t.Context(), n.ID); err != nil {
		t.Fatalf("undo %q: %v", n.Text, err)
	}
	has("a program's withdrawal undone")
}

// TestProgramsKeepEnds: what a program takes away and gives again ends when the owner said,
// however it does that.
func TestProgramsKeepEnds(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes", "Wiki")
	at := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	r.gives(t, id, "Notes", at.Format(time.RFC3339))
	has := func(what string) {
		t.Helper()
		if p := r.owners(t, bobMail); !p.Until["Notes"].Equal(at) || len(p.Until) != 1 || !slices.Contains(p.Apps, "Notes") {
			t.Errorf("%s: %+v", what, p)
		}
	}
	for _, granted := range []bool{false, true} {
		programs.Got(r.app.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes", Granted: granted}))(t)
	}
	has("withdrawn and given")
	programs.Got(r.app.Remove(t.Context(), id))(t)
	programs.Got(r.app.Invite(t.Context(), agentapi.InviteRequest{Email: bobMail, Apps: []string{"Notes", "Wiki"}}))(t)
	has("removed and invited")
	// Of the control plane, only the owner's own word takes the end away.
	r.gives(t, id, "Notes", agentapi.UntilNever)
	programs.Got(r.app.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes"}))(t)
	programs.Got(r.app.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes", Granted: true}))(t)
	if p := r.owners(t, bobMail); len(p.Until) != 0 {
		t.Errorf("given for ever by the owner: %+v", p)
	}
}

// TestEndIsTold: what ended is shown and told, and given again it opens again.
func TestEndIsTold(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes", "Wiki")
	end := r.soon(t, id, "Notes")
	r.await(t, func() bool { return r.last(t).Kind == agentapi.NoticeEnded })
	n := r.last(t)
	if e := n.Ended; e == nil || e.AccountID != id || e.Email != bobMail || !slices.Equal(e.Apps, []string{"Notes"}) || !e.Until.Equal(end) || e.Doubtful {
		t.Errorf("told %+v", n.Ended)
	}
	if !strings.HasPrefix(n.Text, "Notes ended for bob@example.com. It was until ") {
		t.Errorf("told %q", n.Text)
	}
	r.await(t, func() bool { return len(r.listed(t, bobMail).Apps) == 1 })
	if p := r.owners(t, bobMail); p.Status != agentapi.PersonActive || !slices.Equal(p.Apps, []string{"Wiki"}) || len(p.Until) != 0 || !p.Ended["Notes"].Equal(end) {
		t.Errorf("shown %+v", p)
	}
	lines, err := r.owner.Activity(t.Context(), 10)
	if i := slices.IndexFunc(lines, func(l agentapi.Activity) bool { return l.Kind == agentapi.ActivityEnded }); err != nil || i < 0 ||
		lines[i].App != "Notes" || lines[i].Email != bobMail || !lines[i].Until.Equal(end) {
		t.Errorf("activity %+v, %v", lines, err)
	}
	r.down() // the agent alone says the same
	if p := r.owners(t, bobMail); !slices.Equal(p.Apps, []string{"Wiki"}) || !p.Ended["Notes"].Equal(end) {
		t.Errorf("with the control plane away: %+v", p)
	}
	r.up()
	r.await(t, func() bool {
		changed, err := r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes", Granted: true, Until: "7d"})
		return err == nil && len(changed.Person.Apps) == 2 && len(changed.Person.Until) == 1 && len(changed.Person.Ended) == 0
	})
}

// TestClocksAreTold: the owner hears once that this computer's clock is ahead, and of a
// share that ends only because the other clock leapt that it may not have; it opens again
// when that is right.
func TestClocksAreTold(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes")
	told := func(kind string) (all []agentapi.Notice) {
		state := programs.Got(r.owner.State(t.Context()))(t)
		for _, n := range state.Notices {
			if n.Kind == kind {
				all = append(all, n)
			}
		}
		return all
	}
	r.gate.off.Store(int64(-3*time.Hour - time.Minute))
	for _, until := range []string{"72h", "73h", "74h"} {
		r.gives(t, id, "Notes", until)
	}
	r.await(t, func() bool { return len(told(agentapi.NoticeClock)) == 1 })
	if text := told(agentapi.NoticeClock)[0].Text; !strings.HasPrefix(text, "This computer's clock is 3 hours ahead of the server's.") {
		t.Errorf("told %q", text)
	}
	r.gate.off.Store(int64(10 * 24 * time.Hour))
	r.owners(t, bobMail) // an answer, with that date
	r.await(t, func() bool { return len(told(agentapi.NoticeEnded)) == 1 })
	if n := told(agentapi.NoticeEnded)[0]; !n.Ended.Doubtful || !strings.HasPrefix(n.Text, "By the clock, Notes ended for bob@example.com") {
		t.Errorf("told %+v, %+v", n, n.Ended)
	}
	if p := r.owners(t, bobMail); len(p.Apps) != 0 || len(p.Ended) != 1 {
		t.Errorf("after the leap: %+v", p)
	}
	r.gate.off.Store(0)
	r.owners(t, bobMail)
	if p := r.owners(t, bobMail); !slices.Equal(p.Apps, []string{"Notes"}) || len(p.Until) != 1 || len(p.Ended) != 0 {
		t.Errorf("with the clock right again: %+v", p)
	}
	if n := len(told(agentapi.NoticeClock)); n != 1 {
		t.Errorf("the clock was told of %d times", n)
	}
}

// TestEndedWhileAProgramAsks: a program that gives an app again and again never has a
// share outlive its end untold. It gives it anew once it is over, and the owner hears of
// that and can undo it.
func TestEndedWhileAProgramAsks(t *testing.T) {
	t.Parallel()
	for path, ask := range map[string]func(r *rig, id string) error{
		controlapi.PathPeopleAccess: func(r *rig, id string) error {
			_, err := r.app.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes", Granted: true})
			return err
		},
		controlapi.PathPeopleInvite: func(r *rig, id string) error {
			_, err := r.app.Invite(t.Context(), agentapi.InviteRequest{Email: bobMail, Apps: []string{"Notes"}})
			return err
		},
	} {
		t.Run(strings.TrimPrefix(path, "/v1/people/"), func(t *testing.T) {
			t.Parallel()
			r, id := startWithBob(t, "Notes", "Wiki")
			end := r.soon(t, id, "Notes")
			r.gate.on.Store(new(func(req *http.Request) {
				if req.URL.Path == path { // who may open what was looked at; now the end comes
					<-time.After(time.Until(end) + time.Millisecond)
				}
			}))
			programs.Must(t, ask(r, id))
			r.await(t, func() bool { // given anew, and for ever
				p := r.owners(t, bobMail)
				return len(p.Until) == 0 && slices.Contains(p.Apps, "Notes")
			})
			state := programs.Got(r.owner.State(t.Context()))(t)
			i := slices.IndexFunc(state.Notices, func(n agentapi.Notice) bool { return n.By != "" && n.Undo })
			if i < 0 {
				t.Fatalf("the owner was not told: %+v", state.Notices)
			}
			programs.Must(t, r.owner.UndoNotice(t.Context(), state.Notices[i].ID))
			r.await(t, func() bool { return slices.Equal(r.owners(t, bobMail).Apps, []string{"Wiki"}) })
		})
	}
}

// TestTheOwnersWordOvertakesAPrograms: the owner takes away what a program is just taking
// away. Their word counts, though the program's was on its way: the end is forgotten.
func TestTheOwnersWordOvertakesAPrograms(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes", "Wiki")
	r.gives(t, id, "Notes", time.Now().Add(48*time.Hour).UTC().Format(time.RFC3339))
	r.down()
	theirs := r.gate.holdAnswer(controlapi.PathPeopleAccess)
	for _, by := range []*agentapi.Client{r.app, r.owner} {
		programs.Got(by.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes"}))(t)
		if by == r.app { // what it takes away is sent once the control plane is back
			r.up()
			<-theirs.made
		}
	}
	close(theirs.on)
	programs.Got(r.app.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Notes", Granted: true}))(t)
	if p := r.owners(t, bobMail); len(p.Until) != 0 || !slices.Contains(p.Apps, "Notes") {
		t.Errorf("the end that the owner took away is back: %+v", p)
	}
}

package people_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// knock has somebody ask for an app, in the only browser they have, and waits until the
// owner is told when they are.
func (r *rig) knock(t *testing.T, email, name string) control.Session {
	t.Helper()
	account := programs.Got(r.service.Accounts.Ensure(t.Context(), email))(t)
	session := control.Session{ID: "browser of " + email, Account: account}
	programs.Must(t, r.service.Knocks.Ask(t.Context(), r.door(t, name), session))
	return session
}

// door is that of a published app.
func (r *rig) door(t *testing.T, name string) control.Door {
	t.Helper()
	var apps []controlapi.App
	err := r.store.View(t.Context(), func(tx kv.Tx) error {
		raw, err := tx.Get("computer-apps/" + r.device.Computer.ID)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &apps)
	})
	programs.Must(t, err)
	i := slices.IndexFunc(apps, func(a controlapi.App) bool { return a.Name == name })
	if i < 0 {
		t.Fatalf("%s is not among %+v", name, apps)
	}
	return control.Door{Computer: "maya", App: apps[i].ID, Host: name + ".maya.localhost:8443"}
}

// told waits until the owner has so many knocks.
func (r *rig) told(t *testing.T, n int) []agentapi.Knock {
	t.Helper()
	var state agentapi.OwnerState
	r.await(t, func() bool {
		var err error
		state, err = r.owner.State(t.Context())
		return err == nil && len(state.Knocks) == n
	})
	listed, err := r.owner.Knocks(t.Context())
	if err != nil || !slices.EqualFunc(listed, state.Knocks, func(a, b agentapi.Knock) bool { return a.ID == b.ID }) {
		t.Fatalf("listed %+v, %v; the state has %+v", listed, err, state.Knocks)
	}
	return listed
}

// A member asks, the owner lets them in for today, and it ends at midnight; the record
// has both.
func TestKnockForToday(t *testing.T) {
	t.Parallel()
	r, bob := startWithBob(t, "Notes")
	r.publish(t, "photos", "Photos")
	r.knock(t, bobMail, "photos")
	knock := r.told(t, 1)[0]
	if knock.AccountID != bob || knock.Email != bobMail || knock.App != "Photos" || !knock.Known {
		t.Errorf("%+v", knock)
	}
	if _, err := r.owner.AnswerKnock(t.Context(), knock.ID, "tomorrow"); agentapi.CodeOf(err) != agentapi.CodeInvalid {
		t.Errorf("an answer that is none: %v", err)
	}
	r.await(t, func() bool { // written down, so that what the owner does comes after it
		lines, err := r.owner.Activity(t.Context(), 1)
		return err == nil && lines[0].Kind == agentapi.ActivityKnocked
	})
	before := time.Now()
	got, err := r.owner.AnswerKnock(t.Context(), knock.ID, agentapi.KnockToday)
	if err != nil || got.Status != agentapi.PersonActive || got.URL != "https://photos.maya.localhost:8443" || got.Until == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	end := got.Until.Local()
	if h, m, s := end.Clock(); h+m+s != 0 || !end.After(before) || end.Sub(before) > 25*time.Hour {
		t.Errorf("today ends at %v", end)
	}
	if all, err := r.owner.Knocks(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("an answered knock is listed: %+v, %v", all, err)
	}
	if _, err := r.owner.AnswerKnock(t.Context(), knock.ID, agentapi.KnockNo); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("a second answer: %v", err)
	}
	people := programs.Got(r.owner.People(t.Context()))(t)
	i := slices.IndexFunc(people.Members, func(p agentapi.Person) bool { return p.AccountID == bob })
	if p := people.Members[i]; !slices.Equal(p.Apps, []string{"Notes", "Photos"}) || !p.Until["Photos"].Equal(*got.Until) {
		t.Errorf("%+v", p)
	}
	lines := programs.Got(r.owner.Activity(t.Context(), 10))(t)
	var kinds []string
	for _, line := range lines {
		if line.Email == bobMail && line.App == "Photos" {
			kinds = append(kinds, line.Kind)
		}
	}
	if !slices.Equal(kinds, []string{agentapi.ActivityGiven, agentapi.ActivityKnocked}) {
		t.Errorf("the record has %v: %+v", kinds, lines)
	}
}

// Strangers are heard while the owner wants it. A yes invites them without a mail.
func TestKnockOfAStranger(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes")
	carla := programs.Got(r.service.Accounts.Ensure(t.Context(), "carla@example.org"))(t)
	session := control.Session{ID: "browser of carla@example.org", Account: carla}
	stage := func() control.KnockStage {
		standing := programs.Got(r.service.Knocks.Look(t.Context(), r.door(t, "notes"), session))(t)
		return standing.Stage
	}
	if got := stage(); got != control.KnockClosed {
		t.Errorf("at first a stranger stands as %q", got)
	}
	strangers := func(on bool) {
		t.Helper()
		programs.Got(r.owner.ChangeSettings(t.Context(), map[string]any{"strangersKnock": on}))(t)
	}
	strangers(true)
	r.await(t, func() bool { return stage() == control.KnockAsk })
	r.knock(t, "carla@example.org", "notes")
	r.knock(t, "dora@example.org", "notes")
	all := r.told(t, 2)
	if all[0].Known || all[0].Email != "carla@example.org" {
		t.Errorf("%+v", all)
	}
	got, err := r.owner.AnswerKnock(t.Context(), all[0].ID, agentapi.KnockAlways)
	if err != nil || got.Status != agentapi.PersonPending || got.Until != nil || r.mails(t) != 0 {
		t.Fatalf("%+v, %v, %d mails", got, err, r.mails(t))
	}
	programs.Must(t, r.service.Knocks.Accept(t.Context(), r.door(t, "notes"), session))
	r.await(t, func() bool { return r.listed(t, "carla@example.org").Status == agentapi.PersonActive })
	strangers(false) // whom the owner does not listen to does not wait
	r.told(t, 0)
}

// Two answers at once: one of them counts, and the other is told so.
func TestKnockAnsweredTwice(t *testing.T) {
	t.Parallel()
	r, _ := startWithBob(t, "Notes")
	r.publish(t, "photos", "Photos")
	r.knock(t, bobMail, "photos")
	id := r.told(t, 1)[0].ID
	answers := []string{agentapi.KnockToday, agentapi.KnockAlways, agentapi.KnockNo, agentapi.KnockNever}
	errs := make([]error, len(answers))
	var wg sync.WaitGroup
	for i, answer := range answers {
		wg.Go(func() { _, errs[i] = r.owner.AnswerKnock(t.Context(), id, answer) })
	}
	wg.Wait()
	took := 0
	for _, err := range errs {
		if err == nil {
			took++
		} else if agentapi.CodeOf(err) != agentapi.CodeNotFound {
			t.Error(err)
		}
	}
	if took != 1 {
		t.Errorf("%d answers counted: %v", took, errs)
	}
}

// A knock whose app is revoked, or whose person is removed, is gone at once, and its
// answer changes nothing.
func TestKnocksEndHere(t *testing.T) {
	t.Parallel()
	r, bob := startWithBob(t, "Notes")
	r.publish(t, "photos", "Photos")
	r.publish(t, "wiki", "Wiki")
	r.knock(t, bobMail, "photos")
	first := r.told(t, 1)[0]
	programs.Got(r.owner.Revoke(t.Context(), "photos"))(t)
	r.told(t, 0)
	if _, err := r.owner.AnswerKnock(t.Context(), first.ID, agentapi.KnockAlways); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("of a revoked app: %v", err)
	}
	r.knock(t, bobMail, "wiki")
	r.told(t, 1)
	r.down()
	programs.Got(r.owner.Remove(t.Context(), bob))(t)
	if all, err := r.owner.Knocks(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("of somebody removed, with the control plane away: %+v, %v", all, err)
	}
}

package people_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/people"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

// signsOut is a control plane that only signs browsers out.
type signsOut struct {
	unreachable
	ended *string
}

func (s signsOut) EndBrowser(_ context.Context, b controlapi.EndBrowser) error {
	*s.ended = b.ID + " since " + b.Since.Format(time.RFC3339)
	return nil
}

func (s signsOut) EndPasskey(_ context.Context, id string) error {
	*s.ended = "passkey " + id
	return nil
}

func (s signsOut) OwnersLink(_ context.Context, l controlapi.LinkForOwner) (controlapi.OwnersLink, error) {
	return controlapi.OwnersLink{URL: "https://control.porch.example/" + l.Language}, nil
}

// An owner who lost their passkeys has their computer make a link, whose mail speaks their
// language; a computer that is connected to nothing says so.
func TestOwnersLink(t *testing.T) {
	t.Parallel()
	s := programs.Got(store.Open(t.TempDir()))(t)
	defer s.Close()
	cfg := people.Config{
		Control: signsOut{}, Apps: programs.Got(engine.NewApps(engine.AppsConfig{Store: s}))(t), Access: programs.Got(access.New(access.Config{Store: s}))(t),
		Activity: activity.New(activity.Config{Store: s}), Store: s, Language: func() words.Language { return words.German },
	}
	link := programs.Got(programs.Got(people.New(cfg))(t).OwnersLink(t.Context()))(t)
	if link.URL != "https://control.porch.example/de" {
		t.Errorf("it is %+v", link)
	}
	cfg.Control = nil
	if _, err := programs.Got(people.New(cfg))(t).OwnersLink(t.Context()); err == nil {
		t.Error("a computer without an account makes one")
	}
}

// Each browser that signs in as the owner is told of once, whatever they open with it and
// over a restart, and ends, with what was made since, by what the notice offers.
func TestNewBrowserOfTheOwnersIsToldOnce(t *testing.T) {
	t.Parallel()
	dir, ended := t.TempDir(), ""
	browser := func(id, client string) controlapi.Visitor {
		return controlapi.Visitor{AccountID: "maya", Email: "maya@example.com", Browser: id, Client: client, SignedIn: time.Unix(1000, 0).UTC()}
	}
	run := func(check func(*people.People, *engine.Apps, *activity.Log)) {
		s := programs.Got(store.Open(dir))(t)
		defer s.Close()
		apps := programs.Got(engine.NewApps(engine.AppsConfig{Store: s}))(t)
		happened := activity.New(activity.Config{Store: s, Owner: func() string { return "maya@example.com" }})
		check(programs.Got(people.New(people.Config{
			Control: signsOut{ended: &ended}, Apps: apps, Access: programs.Got(access.New(access.Config{Store: s}))(t),
			Activity: happened, Store: s,
		}))(t), apps, happened)
	}
	run(func(p *people.People, _ *engine.Apps, _ *activity.Log) {
		p.OwnersBrowser(browser("b1", "203.0.113.5"))
		p.OwnersBrowser(browser("b1", "203.0.113.5"))
		p.OwnersBrowser(browser("b2", ""))
	})
	run(func(p *people.People, apps *engine.Apps, happened *activity.Log) {
		p.OwnersBrowser(browser("b1", "203.0.113.5"))
		p.OwnersBrowser(browser("b2", ""))
		all := apps.Notices()
		if len(all) != 2 || all[0].Kind != agentapi.NoticeBrowser || all[0].Text != "A browser at 203.0.113.5 signed in as you." || !all[0].Undo || all[1].Text != "A browser signed in as you." {
			t.Fatalf("told %+v", all)
		}
		lines := programs.Got(happened.Page(agentapi.ActivityQuery{Limit: 10}, func(agentapi.Activity) func(context.Context) error { return nil }))(t).Lines
		if len(lines) != 2 || lines[1].Kind != agentapi.ActivityBrowser || !lines[1].You || lines[1].What != "203.0.113.5" || lines[1].Notice != all[0].ID || lines[0].What != "" {
			t.Errorf("in the activity: %+v", lines)
		}
		if n := apps.Unseen(); n != 0 {
			t.Errorf("%d of them keep programs from changing anything", n)
		}
		programs.Must(t, p.UndoNotice(t.Context(), all[0].ID))
		if all = apps.Notices(); ended != "b1 since 1970-01-01T00:16:40Z" || all[0].Undo || !strings.HasPrefix(all[0].Text, "A browser at 203.0.113.5 signed in as you. You said that it was not you") {
			t.Errorf("ended %q, and it says %+v", ended, all[0])
		}
	})
}

// Weakness: whoever reads the owner's mailbox adds a passkey, and the mail that tells of it is
// in that. Checked: the computer tells of each once, over snapshots and a restart, and what
// the notice offers has the control plane remove it.
func TestNewPasskeyOfTheOwnersIsToldOnce(t *testing.T) {
	t.Parallel()
	dir, ended := t.TempDir(), ""
	var happened *activity.Log
	run := func(check func(*people.People, *engine.Apps)) {
		s := programs.Got(store.Open(dir))(t)
		defer s.Close()
		apps := programs.Got(engine.NewApps(engine.AppsConfig{Store: s}))(t)
		happened = activity.New(activity.Config{Store: s})
		check(programs.Got(people.New(people.Config{
			Control: signsOut{ended: &ended}, Apps: apps, Access: programs.Got(access.New(access.Config{Store: s}))(t),
			Activity: happened, Store: s,
		}))(t), apps)
	}
	added := []controlapi.AddedPasskey{{ID: "k1", Name: "Mac", Client: "203.0.113.5"}}
	run(func(p *people.People, _ *engine.Apps) {
		p.OwnersPasskeys(added)
		p.OwnersPasskeys(added)
	})
	added = append(added, controlapi.AddedPasskey{ID: "k2", Name: "Blue key"}, controlapi.AddedPasskey{ID: "l1", Name: "Porch Club", Provider: true})
	run(func(p *people.People, apps *engine.Apps) {
		p.OwnersPasskeys(added)
		all := apps.Notices()
		if len(all) != 3 || all[2].Text != "Porch Club signs you in to your account now." || all[0].Kind != agentapi.NoticePasskey || all[0].Text != "A passkey was added to your account at 203.0.113.5: “Mac”." || !all[0].Undo || all[1].Text != "A passkey was added to your account: “Blue key”." {
			t.Fatalf("told %+v", all)
		}
		if n := apps.Unseen(); n != 0 {
			t.Errorf("%d of them keep programs from changing anything", n)
		}
		lines := programs.Got(happened.Page(agentapi.ActivityQuery{Limit: 10}, func(agentapi.Activity) func(context.Context) error { return nil }))(t).Lines
		if len(lines) != 3 || lines[2].Kind != agentapi.ActivityPasskey || lines[2].What != "Mac" || lines[2].Notice != all[0].ID || lines[2].By != "" || lines[0].By != "Porch Club" {
			t.Errorf("in the activity: %+v", lines)
		}
		programs.Must(t, p.UndoNotice(t.Context(), all[1].ID))
		if all = apps.Notices(); ended != "passkey k2" || all[1].Undo || !strings.HasSuffix(all[1].Text, "You said that it was not you: it opens nothing any more, nor does what was made for your account since.") {
			t.Errorf("ended %q, and it says %+v", ended, all[1])
		}
	})
}

// Weakness: that the operator is about to take somebody's passkeys away is told by mail alone,
// which whoever asked for it may read. Checked: the computer tells it, once for each.
func TestRecoveryOfTheOwnersIsTold(t *testing.T) {
	t.Parallel()
	s := programs.Got(store.Open(t.TempDir()))(t)
	defer s.Close()
	apps := programs.Got(engine.NewApps(engine.AppsConfig{Store: s}))(t)
	happened := activity.New(activity.Config{Store: s})
	p := programs.Got(people.New(people.Config{Apps: apps, Access: programs.Got(access.New(access.Config{Store: s}))(t), Activity: happened, Store: s}))(t)
	until := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, until := range []time.Time{{}, until, until, {}, until.Add(time.Hour)} {
		p.OwnersRecovery(until)
	}
	all := apps.Notices()
	if len(all) != 2 || all[0].Kind != agentapi.NoticePasskey || all[0].Undo || !strings.HasPrefix(all[0].Text, "On 2026-11-30 12:00 UTC the server’s operator removes your passkeys") {
		t.Errorf("told %+v", all)
	}
	lines := programs.Got(happened.Page(agentapi.ActivityQuery{Limit: 10}, func(agentapi.Activity) func(context.Context) error { return nil }))(t).Lines
	if len(lines) != 1 || lines[0].Kind != agentapi.ActivityRecovering || lines[0].Count != 2 || !lines[0].Until.Equal(until.Add(time.Hour)) || lines[0].Notice != all[1].ID {
		t.Errorf("in the activity: %+v", lines)
	}
}

package engine

import (
	"reflect"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

func shareOf(port int, label string, l agentapi.Listener) event {
	return event{
		Kind: "share", At: time.Unix(1700000000, 0).UTC(), NewID: "id-new", Label: label, Port: port, PID: 4711, Terminal: true,
		Listener: l, Listening: l != (agentapi.Listener{}), Own: ownUsers, Me: store.ListenerUser{ID: "1000", Name: "ada"},
		Seen: &agentapi.Seen{Label: label, LocalPort: port, Program: &l.Program, User: &l.User},
	}
}

// Sharing and ending it leaves everything as it was: a name that was not there is gone
// without a trace, an approved one is off its address with its id, label, port,
// options, pause and the user it was approved for, whatever it was before.
func TestShareIsPutBack(t *testing.T) {
	t.Parallel()
	stopped, paused, asking := approvedOn(ada), approvedOn(ada), approvedOn(eve)
	stopped.App.Status = agentapi.StatusStopped
	paused.App.Paused = true
	asking.App.Status, asking.App.Approved = agentapi.StatusPending, &store.Approved{Label: "Notes", LocalPort: 8000, Listener: eve, OtherUser: true}
	asking.App.LocalPort, asking.App.Label, asking.App.Listener = 8100, "Other", ada
	for what, now := range map[string]stored{
		"nothing": {}, "denied": {Denial: &store.Denial{Count: 1}},
		"live": approvedOn(ada), "of another user": approvedOn(eve), "stopped": stopped, "paused": paused, "asking again": asking,
	} {
		for _, port := range []int{8000, 3000} {
			shared, err := happens(t, now, shareOf(port, "Shop", ada))
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			app := shared.App
			if app.Status != agentapi.StatusLive || app.LocalPort != port || app.Label != "Shop" || app.ApprovedFor.ID != "1000" || app.Shared == nil || app.Shared.PID != 4711 {
				t.Errorf("%s: shared as %+v", what, app)
			}
			if len(shared.Notices) != 1 || shared.Notices[0].Kind != agentapi.NoticeApproved || shared.Notices[0].By != "process 4711" {
				t.Errorf("%s: told %+v", what, shared.Notices)
			}
			second := shareOf(4000, "Again", ada)
			second.PID = 4712
			if out, err := happens(t, left(shared), second); agentapi.CodeOf(err) != agentapi.CodeConflict || !reflect.DeepEqual(left(out), left(shared)) {
				t.Errorf("%s: shared twice: %v, %+v", what, err, left(out))
			}
			second.Killed = 4711
			again := programs.Got(happens(t, left(shared), second))(t)
			for _, s := range []stored{left(shared), left(again)} {
				s.App.Name = "notes"
				out := programs.Got(happens(t, s, on("unshare")))(t)
				if out.Gone != s.App.ID {
					t.Errorf("%s: gone %q", what, out.Gone)
				}
				if now.App == nil {
					if out.App != nil || out.Denial != nil {
						t.Errorf("%s: left %+v", what, left(out))
					}
					continue
				}
				want := approvedOn(ada)
				if what == "of another user" || what == "asking again" {
					want = approvedOn(eve)
				}
				want.App.Status, want.App.Paused = agentapi.StatusStopped, now.App.Paused
				if !reflect.DeepEqual(out.App, want.App) {
					t.Errorf("%s: put back as\n%+v, want\n%+v", what, out.App, want.App)
				}
			}
		}
	}
}

// What is shared is what was seen, of the owner's own programs unless they say
// otherwise, and no request of a program is overtaken.
func TestShareRefuses(t *testing.T) {
	t.Parallel()
	seenOther := shareOf(3000, "Shop", ada)
	seenOther.Listener = root
	seenOther.Seen.Program = new("node")
	others := shareOf(3000, "Shop", eve)
	allowed := others
	allowed.Others = true
	unknown := shareOf(3000, "Shop", unseen)
	unknown.Listening = true
	taken := shareOf(3000, "Shop", ada)
	taken.LabelTaken = true
	later := shareOf(3000, "Shop", unseen)
	later.Listener, later.Listening = eve, true // nobody was there when the owner looked
	pending := kept(store.App{Name: "notes", Label: "Notes", Status: agentapi.StatusPending, LocalPort: 8000})
	for what, tt := range map[string]struct {
		now  stored
		e    event
		code agentapi.Code
	}{
		"another program than was seen": {none, seenOther, agentapi.CodeConflict},
		"another user's program":        {none, others, agentapi.CodeForbidden},
		"a program nobody can see":      {none, unknown, agentapi.CodeForbidden},
		"a label that is taken":         {none, taken, agentapi.CodeConflict},
		"somebody came meanwhile":       {none, later, agentapi.CodeConflict},
		"a request that waits":          {pending, shareOf(3000, "Shop", ada), agentapi.CodeConflict},
		"what is not shared":            {approvedOn(ada), on("unshare"), agentapi.CodeConflict},
		"what is not there":             {none, on("unshare"), agentapi.CodeNotFound},
	} {
		out, err := happens(t, tt.now, tt.e)
		if agentapi.CodeOf(err) != tt.code || !reflect.DeepEqual(left(out), tt.now) {
			t.Errorf("%s: %v, %+v", what, err, left(out))
		}
	}
	if out, err := happens(t, none, allowed); err != nil || out.App.ApprovedFor.ID != "1001" {
		t.Errorf("another user's program, allowed: %+v, %v", out.App, err)
	}
	if out, err := happens(t, none, shareOf(3000, "Shop", unseen)); err != nil || out.App.ApprovedFor.ID != "1000" {
		t.Errorf("before anybody listens: %+v, %v", out.App, err)
	}
	kept := shareOf(3000, "Shop", ada)
	kept.Keep = true
	if out, err := happens(t, approvedOn(ada), kept); err != nil || out.App.Shared != nil || out.App.LocalPort != 3000 || out.Gone != "id-1" {
		t.Errorf("kept: %+v, %v", out, err)
	}
}

// An approval that comes from elsewhere than the menu bar is told, and no other.
func TestApprovalAtATerminalIsTold(t *testing.T) {
	t.Parallel()
	pending := kept(store.App{Name: "notes", Label: "Notes", Status: agentapi.StatusPending, LocalPort: 8000, Listener: ada})
	e := event{Kind: "approve", NewID: "id-1", Port: 8000, Listener: ada, Listening: true, Own: ownUsers}
	if out, err := happens(t, pending, e); err != nil || len(out.Notices) != 0 {
		t.Errorf("in the menu bar: %+v, %v", out.Notices, err)
	}
	e.Terminal, e.PID = true, 4711
	out, err := happens(t, pending, e)
	if err != nil || len(out.Notices) != 1 || out.Notices[0].Text != "Notes was approved at a terminal, on port 8000: python3, run by ada." || out.Notices[0].Kind != "approved" {
		t.Fatalf("at a terminal: %+v, %v", out.Notices, err)
	}
	if german := words.German.TellAll(out.Notices[0].Words); german != "Notes wurde in einem Terminal genehmigt, an Port 8000: python3 von ada." {
		t.Errorf("in German: %s", german)
	}
}

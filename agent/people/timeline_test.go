package people_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// timeline is the newest lines of activity about people, newest first, as "kind app*" with a
// star where it can be undone.
func (r *rig) timeline(t *testing.T) (lines []agentapi.Activity, text string) {
	t.Helper()
	page := programs.Got(r.owner.ActivityPage(t.Context(), agentapi.ActivityQuery{Limit: 100, Email: bobMail}))(t)
	var all []string
	for _, line := range page.Lines {
		what := strings.TrimSpace(fmt.Sprint(line.Kind, " ", line.App))
		if line.Undo {
			what += "*"
		}
		all = append(all, what)
	}
	return page.Lines, strings.Join(all, ", ")
}

// What the owner decides about a person is a line each, and what Undo says it restores
// it restores: the invitation that nobody accepted, what was given, what was taken away.
func TestUndoInTheTimeline(t *testing.T) {
	t.Parallel()
	r := start(t)
	ctx := t.Context()
	r.publish(t, "notes", "Notes")
	r.publish(t, "wiki", "Wiki")
	want := func(want string) []agentapi.Activity {
		t.Helper()
		var lines []agentapi.Activity
		var got string
		defer func() {
			if t.Failed() {
				t.Logf("it tells %s", got)
			}
		}()
		r.await(t, func() bool { lines, got = r.timeline(t); return got == want })
		return lines
	}
	undo := func(line agentapi.Activity) {
		t.Helper()
		if err := r.owner.UndoActivity(ctx, line.ID); err != nil {
			t.Fatalf("undo %s %s: %v", line.Kind, line.App, err)
		}
		if err := r.owner.UndoActivity(ctx, line.ID); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("undone twice: %v", err)
		}
	}
	r.invited(t, false, "Notes", "Wiki")
	lines := want("invited Wiki*, invited Notes*")
	if !lines[0].Owner || lines[0].By != "" || lines[0].Name != "wiki" {
		t.Errorf("%+v", lines[0])
	}
	undo(lines[0])
	lines = want("withdrawn Wiki, invited Wiki, invited Notes*")
	undo(lines[2])
	want("removed, withdrawn Wiki, invited Wiki, invited Notes")
	if bob := r.member(t, bobMail); bob.Email != "" {
		t.Errorf("after undoing the invitation he is there: %+v", bob)
	}

	id := r.invited(t, true, "Notes")
	if _, got := r.timeline(t); !strings.HasPrefix(got, "accepted, invited Notes, removed") {
		t.Fatal(got)
	}
	access := func(app string, granted bool, hold int) {
		t.Helper()
		programs.Got(r.owner.SetAccess(ctx, agentapi.AccessRequest{AccountID: id, App: app, Granted: granted, HoldSeconds: hold}))(t)
	}
	has := func(apps ...string) {
		t.Helper()
		r.await(t, func() bool {
			bob := r.listed(t, bobMail)
			return bob.Status == agentapi.PersonActive && slices.Equal(bob.Apps, apps)
		})
	}
	newest := func(prefix string) agentapi.Activity {
		t.Helper()
		var line agentapi.Activity
		var got string
		defer func() {
			if t.Failed() {
				t.Logf("it tells %s", got)
			}
		}()
		r.await(t, func() bool {
			var lines []agentapi.Activity
			lines, got = r.timeline(t)
			if len(lines) > 0 {
				line = lines[0]
			}
			return strings.HasPrefix(got, prefix)
		})
		return line
	}
	access("Wiki", true, 0)
	undo(newest("granted Wiki*, accepted"))
	has("Notes")
	access("Notes", false, 0) // told to the control plane at once
	undo(newest("withdrawn Notes*, withdrawn Wiki"))
	has("Notes")
	programs.Got(r.owner.RemoveHeld(ctx, agentapi.RemoveRequest{AccountID: id, HoldSeconds: 20}))(t)
	undo(newest("removed*, "))
	has("Notes")
	newest("restored, removed, ")
	// A removal that the control plane knows of would take an invitation.
	programs.Got(r.owner.RemoveHeld(ctx, agentapi.RemoveRequest{AccountID: id}))(t)
	newest("removed, restored, ")
}

// An invitation that was sent once more cannot be undone: before it they were invited,
// too. The first one can, and so can one after they were removed.
func TestInvitedAgainIsNotUndone(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes")
	newest := func(undo bool) {
		t.Helper()
		r.await(t, func() bool { // until the snapshot has it
			page, err := r.owner.ActivityPage(t.Context(), agentapi.ActivityQuery{Group: agentapi.GroupDecisions, Limit: 10})
			return err == nil && len(page.Lines) > 0 && page.Lines[0].Kind == agentapi.ActivityInvited && page.Lines[0].Undo == undo
		})
	}
	id := r.invited(t, false, "Notes")
	newest(true)
	r.invited(t, false, "Notes")
	newest(false)
	programs.Got(r.owner.Remove(t.Context(), id))(t)
	r.invited(t, false, "Notes")
	newest(true)
}

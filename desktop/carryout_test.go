package desktop

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/desktop/runner"
	"porchlight/desktop/verbs"
)

// obedient is an agent that keeps what it was asked to do.
type obedient struct {
	runner.Client
	calls []string
}

func (c *obedient) note(call string) error { c.calls = append(c.calls, call); return nil }

func (c *obedient) ApproveSeen(_ context.Context, name string, _ agentapi.Seen) (agentapi.Approved, error) {
	return agentapi.Approved{}, c.note("approve " + name)
}
func (c *obedient) ApproveAlone(_ context.Context, name string, _ agentapi.Seen) (agentapi.Approved, error) {
	return agentapi.Approved{}, c.note("approve-alone " + name)
}
func (c *obedient) Deny(_ context.Context, name string) (agentapi.Denied, error) {
	return agentapi.Denied{OK: true}, c.note("deny " + name)
}
func (c *obedient) Pause(_ context.Context, name string) (agentapi.Closed, error) {
	return agentapi.Closed{}, c.note("pause " + name)
}
func (c *obedient) Resume(_ context.Context, name string) error { return c.note("resume " + name) }
func (c *obedient) Revoke(_ context.Context, name string) (agentapi.Closed, error) {
	return agentapi.Closed{}, c.note("revoke " + name)
}
func (c *obedient) RevokeGrant(_ context.Context, id string) (agentapi.Closed, error) {
	return agentapi.Closed{}, c.note("revoke-client " + id)
}
func (c *obedient) AllowUser(_ context.Context, id string) (agentapi.LocalUser, error) {
	return agentapi.LocalUser{}, c.note("allow-user " + id)
}
func (c *obedient) DenyUser(_ context.Context, id string) (agentapi.LocalUser, error) {
	return agentapi.LocalUser{}, c.note("deny-user " + id)
}
func (c *obedient) GoDark(context.Context) (agentapi.Closed, error) {
	return agentapi.Closed{}, c.note("dark ")
}
func (c *obedient) LightUp(context.Context) error { return c.note("light ") }
func (c *obedient) UndoNotice(_ context.Context, id uint64) error {
	return c.note(fmt.Sprintf("undo %d", id))
}

// What is clicked is what is done, and nothing else.
func TestCarryOut(t *testing.T) {
	t.Parallel()
	for _, v := range []verbs.Verb{verbs.Approve, verbs.ApproveAlone, verbs.Deny, verbs.Pause, verbs.Resume, verbs.Revoke, verbs.RevokeGrant, verbs.AllowUser, verbs.DenyUser, verbs.Dark, verbs.Light, verbs.Undo} {
		agent := &obedient{}
		a := &app{client: agent, known: true}
		act, want := verbs.Action{Verb: v, Name: "notes", Label: "Notes"}, string(v)+" notes"
		switch v {
		case verbs.Dark, verbs.Light:
			act, want = verbs.Action{Verb: v}, string(v)+" "
		case verbs.Undo:
			act, want = verbs.Action{Verb: v, Notice: 7}, "undo 7"
		}
		if _, err := a.carryOut(t.Context(), act); err != nil || !slices.Equal(agent.calls, []string{want}) {
			t.Errorf("%s: the agent was asked to %q, %v", v, agent.calls, err)
		}
	}
}

// fullAfter is an agent that gives so many apps, and refuses the next.
type fullAfter struct {
	obedient
	most int
}

func (c *fullAfter) SetAccess(_ context.Context, r agentapi.AccessRequest) (agentapi.PersonChanged, error) {
	if len(c.calls) == c.most {
		return agentapi.PersonChanged{}, agentapi.Errorf(agentapi.CodeInvalid, "This computer has given out as many apps as it can. Withdraw some that are not used any more.")
	}
	return agentapi.PersonChanged{OK: true}, c.note("give " + r.App)
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
		agent := &fullAfter{most: most}
		a := &app{client: agent, known: true, log: slog.New(slog.DiscardHandler)}
		done, err := a.carryOut(t.Context(), act)
		if (err != nil) != (most == 0) {
			t.Errorf("%d given: %v", most, err)
		}
		if !strings.Contains(done.Title, want.title) || !strings.HasPrefix(done.Body, want.body) || (want.body == "") != (done.Body == "") {
			t.Errorf("%d given: it says %q, %q", most, done.Title, done.Body)
		}
	}
}

// whoKnocked is an agent that serves what is taken back from somebody invited.
type whoKnocked struct {
	obedient
	left []string // labels they are still invited to
}

func (c *whoKnocked) SetAccess(_ context.Context, r agentapi.AccessRequest) (agentapi.PersonChanged, error) {
	p := agentapi.Person{AccountID: r.AccountID, Status: agentapi.PersonPending, Apps: c.left}
	return agentapi.PersonChanged{OK: true, Person: p}, c.note(fmt.Sprintf("access %s %s %v", r.AccountID, r.App, r.Granted))
}

func (c *whoKnocked) Remove(_ context.Context, id string) (agentapi.PersonChanged, error) {
	return agentapi.PersonChanged{OK: true}, c.note("remove " + id)
}

// A yes that is undone leaves what somebody was invited to before they knocked.
func TestUndoOfAYesLeavesEarlierInvitations(t *testing.T) {
	t.Parallel()
	for _, left := range [][]string{nil, {"Photos"}} {
		agent := &whoKnocked{left: left}
		a := &app{client: agent, known: true}
		want := []string{"access bob Notes false"}
		if left == nil {
			want = append(want, "remove bob")
		}
		act := verbs.Action{Verb: verbs.TakeBack, Person: "bob", Label: "bob@example.com", App: "Notes", Name: agentapi.PersonPending}
		if _, err := a.carryOut(t.Context(), act); err != nil || !slices.Equal(agent.calls, want) {
			t.Errorf("invited to %v: the agent was asked to %q, %v", left, agent.calls, err)
		}
	}
}

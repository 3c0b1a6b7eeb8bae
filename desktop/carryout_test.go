package desktop

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"porchlight/agent/agentapi"
)

// asked is an agent that keeps what it was asked to do.
type asked struct {
	client
	calls []string
}

func (c *asked) note(call string) error { c.calls = append(c.calls, call); return nil }

func (c *asked) ApproveSeen(_ context.Context, name string, _ agentapi.Seen) (agentapi.Approved, error) {
	return agentapi.Approved{}, c.note("approve " + name)
}
func (c *asked) ApproveAlone(_ context.Context, name string, _ agentapi.Seen) (agentapi.Approved, error) {
	return agentapi.Approved{}, c.note("approve-alone " + name)
}
func (c *asked) Deny(_ context.Context, name string) error { return c.note("deny " + name) }
func (c *asked) Pause(_ context.Context, name string) (agentapi.Closed, error) {
	return agentapi.Closed{}, c.note("pause " + name)
}
func (c *asked) Resume(_ context.Context, name string) error { return c.note("resume " + name) }
func (c *asked) Revoke(_ context.Context, name string) (agentapi.Closed, error) {
	return agentapi.Closed{}, c.note("revoke " + name)
}
func (c *asked) RevokeGrant(_ context.Context, id string) (agentapi.Closed, error) {
	return agentapi.Closed{}, c.note("revoke-client " + id)
}
func (c *asked) AllowUser(_ context.Context, id string) (agentapi.LocalUser, error) {
	return agentapi.LocalUser{}, c.note("allow-user " + id)
}
func (c *asked) DenyUser(_ context.Context, id string) (agentapi.LocalUser, error) {
	return agentapi.LocalUser{}, c.note("deny-user " + id)
}
func (c *asked) GoDark(context.Context) (agentapi.Closed, error) {
	return agentapi.Closed{}, c.note("dark ")
}
func (c *asked) LightUp(context.Context) error { return c.note("light ") }
func (c *asked) UndoNotice(_ context.Context, id uint64) error {
	return c.note(fmt.Sprintf("undo %d", id))
}

// What is clicked is what is done, and nothing else.
func TestCarryOut(t *testing.T) {
	t.Parallel()
	for _, v := range []verb{doApprove, doApproveAlone, doDeny, doPause, doResume, doRevoke, doRevokeGrant, doAllowUser, doDenyUser, doDark, doLight, doUndo} {
		agent := &asked{}
		a := &app{client: agent, known: true}
		act, want := action{verb: v, name: "notes", label: "Notes"}, string(v)+" notes"
		switch v {
		case doDark, doLight:
			act, want = action{verb: v}, string(v)+" "
		case doUndo:
			act, want = action{verb: v, notice: 7}, "undo 7"
		}
		if _, err := a.carryOut(t.Context(), act); err != nil || !slices.Equal(agent.calls, []string{want}) {
			t.Errorf("%s: the agent was asked to %q, %v", v, agent.calls, err)
		}
	}
}

package activity_test

import (
	"context"
	"slices"
	"testing"

	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Weakness: on a computer whose clock is ahead of the server's, the line that somebody left a
// group put them back into it after they were removed and invited anew.
// Checked: nothing about a person's groups can be undone once they were removed, or left, by
// the order in which it was written down.
func TestRemovalEndsTheUndoOfGroups(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{agentapi.ActivityRemoved, agentapi.ActivityLeft} {
		log := activity.New(activity.Config{Store: openStore(t, t.TempDir())})
		undoable := func() bool {
			page := programs.Got(log.Page(agentapi.ActivityQuery{Limit: 20}, func(agentapi.Activity) func(context.Context) error {
				return func(context.Context) error { return nil }
			}))(t)
			return page.Lines[slices.IndexFunc(page.Lines, func(l agentapi.Activity) bool { return l.Kind == agentapi.ActivityGroupLeft })].Undo
		}
		add := func(kind, account, app string) {
			log.Add(agentapi.Activity{Kind: kind, Owner: true, Group: "g1", What: "Family", AccountID: account, App: app})
		}
		add(agentapi.ActivityGroupLeft, "bob", "")
		add(agentapi.ActivityGroupJoined, "maya", "")
		add(gone, "maya", "")
		if !undoable() {
			t.Error("it cannot be undone, for what was done to somebody else")
		}
		add(gone, "bob", "")
		add(agentapi.ActivityInvited, "bob", "notes")
		if undoable() {
			t.Errorf("after %q and a fresh invitation it can be undone", gone)
		}
	}
}

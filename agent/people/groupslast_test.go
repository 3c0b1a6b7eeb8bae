package people_test

import (
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: a withdrawal that was undone, and made again before the control plane had heard of
// the first, ended only until it had; then the group opened the app again.
// Checked: the second stands as the first would have.
func TestWithdrawnAgainWhileAway(t *testing.T) {
	t.Parallel()
	r, id, group := family(t)
	r.join(t, group, id)
	r.down()
	take := agentapi.AccessRequest{AccountID: id, App: "Photos"}
	programs.Got(r.owner.SetAccess(t.Context(), take))(t)
	page := programs.Got(r.owner.ActivityPage(t.Context(), agentapi.ActivityQuery{Limit: 20}))(t)
	programs.Must(t, r.owner.UndoActivity(t.Context(), page.Lines[0].ID))
	programs.Got(r.owner.SetAccess(t.Context(), take))(t)
	r.up()
	r.settled(t)
	r.visitsSoon(t, "withdrawn, undone and withdrawn", false, "Notes")
}

// Weakness: the answer to a gift, come late, had groups open an app that was withdrawn after
// the gift was made.
// Checked: what was last stands.
func TestWithdrawnWhileGiving(t *testing.T) {
	t.Parallel()
	r, id, group := family(t)
	r.join(t, group, id)
	late := r.gate.holdAnswer(controlapi.PathPeopleAccess)
	given := make(chan error, 1)
	go func() {
		_, err := r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Photos", Granted: true})
		given <- err
	}()
	<-late.made
	programs.Got(r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Photos"}))(t)
	close(late.on)
	programs.Must(t, <-given)
	r.settled(t)
	r.visitsSoon(t, "given, and withdrawn", false, "Notes")
}

// Weakness: the Undo of a program's invitation removed whom the owner had put into a group
// since. Checked: they stay, in the group, which opens what it did, and lose the gift alone.
func TestUndoOfAnInvitationLeavesTheGroup(t *testing.T) {
	t.Parallel()
	r := start(t)
	ctx := t.Context()
	r.publish(t, "notes", "Notes")
	r.publish(t, "photos", "Photos")
	programs.Got(r.app.Invite(ctx, agentapi.InviteRequest{Email: bobMail, Apps: []string{"Notes"}}))(t)
	n := r.last(t)
	r.accepted(t)
	id := r.listed(t, bobMail).AccountID
	group := programs.Got(r.owner.AddGroup(ctx, agentapi.GroupNamed{Name: "Family"}))(t).Group.ID
	for _, app := range []string{"Notes", "Photos"} {
		programs.Got(r.owner.GrantGroup(ctx, group, agentapi.GroupAppRequest{App: app}))(t)
	}
	programs.Got(r.owner.JoinGroup(ctx, group, agentapi.MemberRequest{AccountID: id}))(t)
	programs.Must(t, r.owner.UndoNotice(ctx, n.ID))
	if bob := r.listed(t, bobMail); bob.Status == agentapi.PersonRemoved {
		t.Fatal("bob is removed")
	}
	r.settled(t)
	r.visitsSoon(t, "undone", true, "Notes", "Photos")
}

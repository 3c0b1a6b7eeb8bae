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

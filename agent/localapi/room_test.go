package localapi

import (
	"fmt"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/people"
	"porchlight/agent/store"
)

// S9: while too many changes wait that can be undone and that the owner has not
// seen, programs change nothing more, and none of them is lost.
func TestS9ChangesWaitForTheOwner(t *testing.T) {
	t.Parallel()
	control := &plane{row: ben}
	r := startWith(t, func(r *rig) { r.control = control })
	r.approved(t, "notes", "Notes")
	ctx, owner := t.Context(), r.owner()
	change := func(i int) error {
		control.row.Apps = nil
		by := people.Actor{Name: fmt.Sprint("program ", i), Process: fmt.Sprint(i)}
		_, err := r.people.SetAccess(ctx, by, agentapi.AccessRequest{AccountID: "b2", App: "Notes", Granted: true})
		return err
	}
	for i := range store.MaxUndos {
		if err := change(i); err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
	}
	for range 3 {
		if err := change(1000); agentapi.CodeOf(err) != agentapi.CodeTooMany || len(control.row.Apps) != 0 {
			t.Fatalf("with no room: %v, %v", err, control.row.Apps)
		}
	}
	if _, err := owner.SetAccess(ctx, agentapi.AccessRequest{AccountID: "b2", App: "Notes", Granted: true}); err != nil {
		t.Errorf("the owner changes what they like: %v", err)
	}
	state, err := owner.State(ctx)
	if err != nil || len(state.Notices) != store.MaxUndos || state.NoticesSeen != 0 || state.Notices[0].Text != "program 0 let ben@example.net open Notes." {
		t.Fatalf("%d notices, %d seen, %v", len(state.Notices), state.NoticesSeen, err)
	}
	newest := state.Notices[len(state.Notices)-1].ID
	if err := owner.SeeNotices(ctx, newest+1); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("seeing what is not there: %v", err)
	}
	if err := owner.SeeNotices(ctx, newest); err != nil {
		t.Fatal(err)
	}
	if err := change(1001); err != nil {
		t.Errorf("after the owner looked: %v", err)
	}
	r.end()
	r.serve(t)
	if state, err := r.owner().State(ctx); err != nil || state.NoticesSeen != newest {
		t.Errorf("after a restart %d is seen, %v", state.NoticesSeen, err)
	}
}

package people_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// devices are the names of those listed, in one line.
func (r *rig) devices(t *testing.T) string {
	t.Helper()
	var names []string
	for _, d := range programs.Got(r.owner.Devices(t.Context()))(t) {
		slices.Sort(d.Apps)
		names = append(names, d.Name+" of "+d.Email+": "+strings.Join(d.Apps, "+"))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// What a member's certificate opens ends with what the owner takes away, and does not come
// back when it is given again; an Undo loses nothing. The owner's own is left alone.
func TestDevicesEndWithWhatIsTakenAway(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes", "Wiki")
	programs.Got(r.owner.MakeDevice(t.Context(), agentapi.DeviceRequest{Name: "mine", Apps: []string{"notes", "Notes"}}))(t)
	r.end()
	s := programs.Got(store.Open(r.dir))(t)
	kept := programs.Got(s.Devices())(t)
	snapshot, _, _, err := s.Snapshot()
	programs.Must(t, err)
	i := slices.IndexFunc(snapshot.People, func(p controlapi.Person) bool { return p.AccountID == id })
	theirs := snapshot.People[i]
	kept = append(kept, store.Device{
		ID: "theirs", AccountID: id, Name: "theirs", Apps: theirs.Apps, Digest: make([]byte, 32), Since: theirs.Since, NotAfter: time.Now().Add(time.Hour),
	})
	programs.Must(t, s.SaveDevices(kept))
	programs.Must(t, s.Close())
	r.serveAndSync(t)
	const mine, both = "mine of " + ownerMail + ": Notes", "theirs of " + bobMail + ": Notes+Wiki"
	wants := func(when, want string) {
		t.Helper()
		if got := r.devices(t); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	wants("before", mine+", "+both)
	r.held(t, id, 60)
	wants("removed, and held", mine)
	programs.Got(r.owner.UndoHeld(t.Context(), agentapi.HeldChange{AccountID: id}))(t)
	wants("undone", mine+", "+both)
	programs.Got(r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Wiki"}))(t)
	wants("withdrawn", mine+", theirs of "+bobMail+": Notes")
	r.settled(t)
	programs.Got(r.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Wiki", Granted: true}))(t)
	wants("given again", mine+", theirs of "+bobMail+": Notes")
	programs.Got(r.owner.Remove(t.Context(), id))(t)
	wants("removed", mine)
	r.settled(t)
	programs.Got(r.owner.Invite(t.Context(), agentapi.InviteRequest{Email: bobMail, Apps: []string{"Notes"}}))(t)
	r.accepted(t)
	wants("invited again", mine)
	if _, err := r.owner.RevokeDevice(t.Context(), "theirs"); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("it is there: %v", err)
	}
	programs.Got(r.owner.Revoke(t.Context(), "notes"))(t)
	wants("its app revoked", "")
	// What is listed no more takes nobody's room.
	programs.Got(r.owner.MakeDevice(t.Context(), agentapi.DeviceRequest{Name: "another", Apps: []string{"wiki"}}))(t)
	r.end()
	s = programs.Got(store.Open(r.dir))(t)
	defer s.Close()
	if kept := programs.Got(s.Devices())(t); len(kept) != 1 || kept[0].Name != "another" {
		t.Errorf("kept: %+v", kept)
	}
}

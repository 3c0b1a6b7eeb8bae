package people

import (
	"fmt"
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// All groups together open no more than the control plane takes; who is not on the list
// counts for none, and what takes away is never refused.
func TestRoomForGroups(t *testing.T) {
	t.Parallel()
	kept := programs.Got(store.Open(t.TempDir()))(t)
	t.Cleanup(func() { kept.Close() })
	who := programs.Got(access.New(access.Config{Store: kept}))(t)
	since := time.Unix(1, 0).UTC()
	snapshot := controlapi.Snapshot{Version: "v", Computer: controlapi.Computer{ID: "c"}}
	big := store.Group{ID: "big", Members: []store.GroupMember{{AccountID: "gone", Since: since}}}
	for n := range maxGroupMembers {
		id := fmt.Sprint("account", n)
		snapshot.People = append(snapshot.People, controlapi.Person{AccountID: id, Role: controlapi.RoleMember, Status: controlapi.PersonActive, Since: since})
		big.Members = append(big.Members, store.GroupMember{AccountID: id, Since: since})
	}
	for n := range controlapi.MaxByGroup / maxGroupMembers {
		big.Apps = append(big.Apps, store.GroupApp{AppID: fmt.Sprint("app", n)})
	}
	who.SetSnapshot(snapshot)
	programs.Got(who.PutGroup(big, false))(t)
	p := &People{cfg: Config{Access: who}}
	one := store.Group{ID: "one", Members: big.Members[1:2]}
	if err := p.roomFor(one, false); err != nil {
		t.Errorf("a group of no app: %v", err)
	}
	one.Apps = big.Apps[:1]
	if err := p.roomFor(one, false); err == nil {
		t.Error("more is taken than the control plane takes")
	}
	if err := p.roomFor(one, true); err != nil {
		t.Errorf("taking away: %v", err)
	}
	if told := len(who.ByGroup()) * len(big.Apps); told != controlapi.MaxByGroup {
		t.Errorf("the control plane is told of %d", told)
	}
}

package localapi

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/procinfo"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// busy is a rig with as much as a computer may have: every app approved, a few
// thousand people who may open most, every place for a program taken.
func busy(t testing.TB) *rig {
	t.Helper()
	const apps, people = 500, 5000
	r := start(t)
	var ids []string
	for i := range apps {
		name := fmt.Sprintf("app-%03d", i)
		programs.Got(r.apps.Publish(t.Context(), engine.Caller{}, agentapi.PublishRequest{Name: name, Label: fmt.Sprintf("App number %03d", i), LocalPort: 8000 + i}))(t)
		programs.Got(r.apps.Approve(t.Context(), name, agentapi.Approval{}))(t)
		app, _ := r.apps.Lookup(name)
		ids = append(ids, app.ID)
	}
	snapshot := controlapi.Snapshot{Version: "v", Computer: controlapi.Computer{ID: "c"}}
	for i := range people {
		snapshot.People = append(snapshot.People, controlapi.Person{
			AccountID: fmt.Sprintf("account-%04d", i), Email: fmt.Sprintf("person-%04d@%s.example.com", i, strings.Repeat("x", 40)),
			Role: controlapi.RoleMember, Status: controlapi.PersonActive, Apps: ids[:i%apps], Epoch: 1,
		})
	}
	r.access.SetSnapshot(snapshot)
	for i := range 1000 {
		programs.Got(r.reg.Register(engine.Caller{}, agentapi.RegisterRequest{AppID: fmt.Sprintf("com.example.app-%04d", i), PID: os.Getpid()}, func() procinfo.Process { return procinfo.Process{} }))(t)
	}
	return r
}

// TestStateIsBounded: with everything at its bound an event of the owner's stream
// is below a mebibyte, however many people there are. Names are where it could
// grow: each app names a few of those who may open it, and counts the rest.
func TestStateIsBounded(t *testing.T) {
	t.Parallel()
	r := busy(t)
	state := programs.Got(r.api.state(t.Context()))(t)
	raw := programs.Got(json.Marshal(state))(t)
	t.Logf("%d KiB", len(raw)>>10)
	if len(raw) > 1<<20 {
		t.Errorf("an event has %d bytes", len(raw))
	}
	for _, app := range state.Apps {
		if len(app.OpenTo) > agentapi.MaxNamed || app.OpenToCount < len(app.OpenTo) {
			t.Errorf("%s names %d of %d people", app.Name, len(app.OpenTo), app.OpenToCount)
		}
	}
	if state.PeopleCount != 5000 || len(state.Apps) != 500 || len(state.Registrants) != 1000 {
		t.Errorf("%d people, %d apps, %d programs", state.PeopleCount, len(state.Apps), len(state.Registrants))
	}
}

// BenchmarkState is what one event costs then.
func BenchmarkState(b *testing.B) {
	r := busy(b)
	for i := 0; b.Loop(); i++ {
		r.outside.connection.Trouble = fmt.Sprint(i)
		programs.Got(r.api.state(b.Context()))(b)
	}
}

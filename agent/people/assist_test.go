package people_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/people"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// clientOf is a control plane that knows one client, by this id.
type clientOf struct {
	people.Control
	id string
}

func (c clientOf) Grants(context.Context) ([]controlapi.Grant, error) {
	return []controlapi.Grant{{ID: "g", ClientID: c.id, ClientName: "Claude Code", AccountID: "bob", Email: bobMail, CreatedAt: time.Now()}}, nil
}

// Weakness: what is to be pasted into a terminal holds what the control plane calls a client
// and this computer.
// Attack: a control plane calls them something that a shell carries out.
// Checked: no command has it.
func TestHostileNamesInACommand(t *testing.T) {
	t.Parallel()
	for id, known := range map[string]bool{"abc234": true, "x; id": false, "$(id)": false, "x\nid": false, "--debug": false, "x y": false} {
		s := programs.Got(store.Open(t.TempDir()))(t)
		t.Cleanup(func() { s.Close() })
		p := programs.Got(people.New(people.Config{
			Control: clientOf{id: id}, Store: s, Access: programs.Got(access.New(access.Config{Store: s}))(t),
			Apps: programs.Got(engine.NewApps(engine.AppsConfig{Store: s}))(t), Activity: activity.New(activity.Config{Store: s}),
		}))(t)
		programs.Got(p.ListGrants(t.Context()))(t)
		app := agentapi.OwnerApp{AppSummary: agentapi.AppSummary{Name: "notes", Label: "Notes", URL: "https://notes.maya.example:8443"}}
		told := programs.Got(p.Assist(t.Context(), agentapi.Account{}, app, "/mcp"))(t)
		i := slices.IndexFunc(told.Assistants, func(a agentapi.Assistant) bool { return a.Takes == agentapi.TakesCommand })
		want := "claude mcp add --transport http notes https://notes.maya.example:8443/mcp"
		if known {
			want = "claude mcp add --transport http --client-id " + id + " notes https://notes.maya.example:8443/mcp"
		}
		if got := told.Assistants[i].Paste; got != want {
			t.Errorf("the id %q: %s", id, got)
		}
		app.URL = "https://notes." + id + ".example/$(id)"
		if told, err := p.Assist(t.Context(), agentapi.Account{}, app, "/mcp"); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("at %s: %+v, %v", app.URL, told, err)
		}
	}
}

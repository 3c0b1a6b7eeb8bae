package local

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

func addClient(ctx context.Context, owner *agentapi.Client, name string) (added agentapi.AddedClient, err error) {
	raw, err := owner.Call(ctx, http.MethodPost, "/owner/clients", agentapi.AddClientRequest{Name: name})
	if err == nil {
		err = json.Unmarshal(raw, &added)
	}
	return added, err
}

// On a computer of its own the owner is the operator: an assistant that runs there gets an
// id when the owner asks for it, once, and what is to be pasted has it then. None elsewhere
// gets one, and nothing that is told is a secret.
func TestOwnerMakesAnAssistantsID(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	told := func() map[string]agentapi.Assistant {
		t.Helper()
		a := programs.Got(s.house.owner.Assist(ctx, "notes", "/api/mcp"))(t)
		if !strings.HasSuffix(a.URL, "/api/mcp") || !strings.HasPrefix(a.URL, "https://notes.") || !a.Local || a.RootCA == "" || !strings.HasPrefix(a.AuthorizationServer, "https://control.") {
			t.Errorf("%+v", a)
		}
		by := map[string]agentapi.Assistant{}
		for _, one := range a.Assistants {
			by[one.Name] = one
			if !strings.Contains(one.Paste, a.URL) {
				t.Errorf("%s is told %s", one.Name, one.Paste)
			}
		}
		return by
	}
	before := told()
	for name, one := range before {
		if one.ClientID != "" || one.Elsewhere != (name == "Claude" || name == "ChatGPT") {
			t.Errorf("at first %q: %+v", name, one)
		}
	}
	clients := s.controlPlane.Service.Clients
	if all := programs.Got(clients.List(ctx))(t); len(all) != 1 { // the scene's own
		t.Errorf("asking made some: %+v", all)
	}
	for name, redirect := range map[string]string{
		"Claude Code": "http://localhost:49152/callback", "Cursor": "cursor://anysphere.cursor-mcp/oauth/callback", "VS Code": "http://127.0.0.1:33418/", "": "http://127.0.0.1:1234/callback",
	} {
		made, err := addClient(ctx, s.house.owner, name)
		again, err2 := addClient(ctx, s.house.owner, name)
		if err != nil || err2 != nil || made != again || made.ClientID == "" {
			t.Fatalf("%q: %+v, %v; again %+v, %v", name, made, err, again, err2)
		}
		c, err := clients.For(ctx, made.ClientID, redirect)
		if err != nil || !c.Public {
			t.Errorf("%q called back at %s: %+v, %v", name, redirect, c, err)
		}
		one := told()[name]
		if one.ClientID != made.ClientID || name != "" && !strings.Contains(one.Paste, made.ClientID) {
			t.Errorf("%q is told %+v", name, one)
		}
	}
	for _, name := range []string{"Claude", "Somebody else"} {
		if _, err := addClient(ctx, s.house.owner, name); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("an id for %s: %v", name, err)
		}
	}
	for _, path := range []string{"mcp", "/a b", "/$(id)", "/a?b", "/\""} {
		if _, err := s.house.owner.Assist(ctx, "notes", path); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("the path %q: %v", path, err)
		}
	}
	for option, address := range map[string]string{"/tools": "/tools", "": agentapi.DefaultAssistPath} {
		programs.Got(s.house.owner.ChangeOptions(ctx, "notes", map[string]any{"mcp": option}))(t)
		if a := programs.Got(s.house.owner.Assist(ctx, "notes", ""))(t); !strings.HasSuffix(a.URL, address) {
			t.Errorf("where the option says %q it is told %s", option, a.URL)
		}
	}
	if _, err := s.house.owner.Assist(ctx, "nothing", "/mcp"); !agentapi.IsNoApp(err) {
		t.Errorf("an app that is not there: %v", err)
	}
	programs.Got(s.open.Publish(ctx, agentapi.PublishRequest{Name: "waits", Label: "Waits", LocalPort: s.app.port}))(t)
	if _, err := s.house.owner.Assist(ctx, "waits", "/mcp"); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("an app that waits: %v", err)
	}
}

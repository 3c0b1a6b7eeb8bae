package localapi

import (
	"encoding/json"
	"os"
	"testing"

	"porchlight/agent/agentapi"
)

// The owner shares a port as they saw it, and takes it back; what they did not see is
// refused.
func TestShare(t *testing.T) {
	t.Parallel()
	r := start(t)
	owner := r.owner()
	seen, err := owner.Port(t.Context(), 8000, "My Shop")
	if err != nil || !seen.Listening || seen.Listener.Program != "notesd" || seen.App != "" || seen.Name != "my-shop" || seen.Label != "My Shop" {
		t.Fatalf("%+v, %v", seen, err)
	}
	if seen, err := owner.Port(t.Context(), 8000, ""); err != nil || seen.Name != "notesd" {
		t.Errorf("without a folder: %+v, %v", seen, err)
	}
	share := agentapi.Share{Seen: agentapi.Seen{Label: "Shop", LocalPort: 8000, Program: &seen.Listener.Program, User: &seen.Listener.User}}
	if _, err := owner.Share(t.Context(), "shop", share); agentapi.CodeOf(err) != agentapi.CodeForbidden {
		t.Errorf("another user's program: %v", err)
	}
	share.Others = true
	pub, err := owner.Share(t.Context(), "shop", share)
	if err != nil || pub.Status != agentapi.StatusLive || pub.URL == "" {
		t.Fatalf("%+v, %v", pub, err)
	}
	if seen, err := owner.Port(t.Context(), 8000, "My Shop"); err != nil || !seen.Published || seen.App != "shop" || seen.Name != "shop" || seen.Label != "Shop" {
		t.Errorf("the port of a live app: %+v, %v", seen, err)
	}
	state, err := owner.State(t.Context())
	if err != nil || len(state.Apps) != 1 || state.Apps[0].Shared == nil || !state.Apps[0].Shared.Anew || state.Apps[0].Shared.PID != os.Getpid() {
		t.Errorf("%+v, %v", state.Apps, err)
	}
	if len(state.Notices) != 0 { // this process is the agent's, as the menu bar's is, which says so itself
		t.Errorf("told %+v", state.Notices)
	}
	if _, err := owner.Unshare(t.Context(), "shop"); err != nil {
		t.Error(err)
	}
	if _, err := owner.Unshare(t.Context(), "shop"); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("twice: %v", err)
	}
	for body, code := range map[string]agentapi.Code{
		`{"label":"Shop","localPort":8000,"program":"other","user":"maya","others":true}`:              agentapi.CodeConflict,
		`{"label":"Shop","localPort":8000,"program":"notesd"}`:                                         agentapi.CodeInvalid,
		`{"label":"Shop","localPort":8000,"user":"maya"}`:                                              agentapi.CodeInvalid,
		`{"label":"","localPort":8000,"program":"notesd","user":"maya","others":true}`:                 agentapi.CodeInvalid,
		`{"label":"Shop","localPort":70000,"program":"notesd","user":"maya","others":true}`:            agentapi.CodeInvalid,
		`{"label":"Shop","localPort":8000,"program":"notesd","user":"maya","others":"yes"}`:            agentapi.CodeInvalid,
		`{"label":"Shop","localPort":8000,"program":"notesd","user":"maya","others":true,"keep":null}`: agentapi.CodeInvalid,
	} {
		if _, err := owner.Call(t.Context(), "POST", "/owner/apps/shop/share", json.RawMessage(body)); agentapi.CodeOf(err) != code {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, port := range []string{"0", "70000", "x", r.addr[len("127.0.0.1:"):]} {
		_, err := owner.Call(t.Context(), "GET", "/owner/ports/"+port, nil)
		if code := agentapi.CodeOf(err); code != agentapi.CodeInvalid && code != agentapi.CodeNotFound {
			t.Errorf("port %s: %v", port, err)
		}
	}
}

package localapi

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/docs/openapi"
	"porchlight/test/programs"
)

// TestDeskLooksAndTakesAway: with the keychain locked, the menu bar of this process
// sees everything and takes away; it gives nothing, and nobody else does anything.
func TestDeskLooksAndTakesAway(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.approved(t, "notes", "Notes")
	r.approved(t, "wiki", "Wiki")
	r.server.SetOwnerSecretHash(nil)
	takes := map[string]bool{}
	for _, path := range []string{
		"GET /owner/state", "GET /owner/events", "GET /owner/account", "GET /owner/people", "GET /owner/visitors",
		"GET /owner/grants", "GET /owner/passwords", "GET /owner/devices", "GET /owner/activity", "GET /owner/activity/page", "GET /owner/users", "GET /owner/settings", "GET /owner/listening",
		"GET /owner/knocks", "POST /owner/knocks/{id}/answer",
		"POST /owner/apps/{name}/deny", "POST /owner/apps/{name}/stop", "POST /owner/apps/{name}/pause", "POST /owner/apps/{name}/revoke", "DELETE /owner/apps/{name}/share",
		"POST /owner/people/grant", "POST /owner/people/revoke", "POST /owner/people/undo", "POST /owner/people/settle",
		"GET /owner/groups", "DELETE /owner/groups/{id}", "POST /owner/groups/{id}/leave", "POST /owner/groups/{id}/withdraw",
		"POST /owner/visitors/disconnect", "POST /owner/grants/{id}/revoke", "POST /owner/passwords/{id}/revoke",
		"POST /owner/devices/{id}/revoke", "GET /owner/senders", "POST /owner/senders/{id}/revoke",
		"GET /owner/domains", "DELETE /owner/domains/{name}",
		"POST /owner/notices/{id}/seen",
		"POST /owner/dark", "POST /owner/users/{id}/deny",
	} {
		takes[path] = true
	}
	for _, rt := range routes {
		name, take := rt.method+" "+rt.path, rt.tier == tierTake
		if rt.tier != tierOwner && !take {
			continue
		}
		if take != takes[name] {
			t.Errorf("%s is of the tier %d", name, rt.tier)
		}
		q := request{method: rt.method, path: strings.NewReplacer("{name}", "nothing", "{id}", "1").Replace(rt.path), socket: true, secret: deskSecret}
		if !take {
			r.wants(t, q, http.StatusForbidden, "Unlock your keychain first")
		}
		for _, other := range []request{{socket: true}, {socket: true, secret: "another"}, {socket: true, secret: r.secret}, {secret: deskSecret}} {
			q.socket, q.secret = other.socket, other.secret
			r.wants(t, q, http.StatusForbidden, "")
		}
	}
	owner := func(method, path, body string, want int) string {
		t.Helper()
		return r.wants(t, request{method: method, path: path, body: body, socket: true, secret: deskSecret}, want, "").body
	}
	if state := owner("GET", "/owner/state", "", 200); !strings.Contains(state, `"locked":true`) {
		t.Errorf("the state does not say so: %s", state)
	}
	owner("POST", "/owner/apps/notes/pause", "", 200)
	owner("POST", "/owner/apps/notes/resume", "", 403)
	owner("POST", "/owner/apps/wiki/revoke", "", 200)
	owner("POST", "/owner/dark", "", 200)
	owner("DELETE", "/owner/dark", "", 403)
	owner("POST", "/owner/people/grant", `{"accountId":"nobody","app":"Notes","granted":true}`, 403)
	owner("POST", "/owner/people/grant", `{"accountId":"nobody","app":"Notes","granted":false}`, 503)
	if app, _ := r.apps.Lookup("notes"); !app.Paused || app.Status != agentapi.StatusLive {
		t.Errorf("the app is %+v", app)
	}
}

var document = sync.OnceValues(openapi.Loopback)

// described holds every answer of a handler to docs/openapi/loopback.yaml.
func described(t testing.TB) func(http.Handler) http.Handler {
	t.Helper()
	d := programs.Got(document())(t)
	return func(h http.Handler) http.Handler { return d.Checked(h, t.Errorf) }
}

// Every route is in the OpenAPI document under its tier, and nothing else is.
func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	d := programs.Got(document())(t)
	tags := map[tier]string{tierOpen: "open", tierCapability: "capability", tierOwner: "owner", tierTake: "owner"}
	var ours []string
	for _, rt := range routes {
		operation := rt.method + " " + rt.path
		ours = append(ours, operation)
		if tag := d.Tag(operation); tag != tags[rt.tier] {
			t.Errorf("%s is described as one of the %q tier, and is of %q", operation, tag, tags[rt.tier])
		}
	}
	slices.Sort(ours)
	if described := d.Operations(); !slices.Equal(ours, described) {
		t.Errorf("routes:\n%s\ndescribed:\n%s", strings.Join(ours, "\n"), strings.Join(described, "\n"))
	}
}

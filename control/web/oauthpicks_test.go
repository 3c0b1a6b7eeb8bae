package web

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

const notesAt, photosAt = "https://notes.maya.localhost:8443/mcp", "https://photos.maya.localhost:8443"

// picks is a rig where bob may open Notes and Photos on maya, and has a computer of his own.
func picks(t *testing.T) (*rig, *browser) {
	t.Helper()
	r := newRig(t)
	programs.Must(t, r.svc.Agents.NoteAppGrants(t.Context(), r.owner.Computer.ID, true))
	r.putApps(
		controlapi.App{ID: "app1", Name: "notes", Label: "Notes", Live: true},
		controlapi.App{ID: "app2", Name: "photos", Label: "Photos", Live: true},
		controlapi.App{ID: "app3", Name: "diary", Label: "Diary", Live: true},
	)
	r.member("bob@example.com", "app1", "app2")
	own := must(r.svc.Computers.Ensure(t.Context(), "bob@example.com", "bob"))
	programs.Must(t, r.svc.Agents.NoteAppGrants(t.Context(), own.Computer.ID, true))
	programs.Must(t, r.svc.Agents.PutApps(t.Context(), own.Computer.ID, controlapi.Apps{
		Apps: []controlapi.App{{ID: "b1", Name: "notes", Label: "Bob’s notes", Live: true}},
	}))
	return r, r.signedIn("bob@example.com")
}

// opens are the apps of the grant of an access token, as its computer's agent is told.
func (r *rig) opens(token string) []string {
	r.t.Helper()
	id := claims(r.t, token)["grant"].(string)
	apps, listed := r.snapshot().GrantApps[id]
	if listed != controlapi.IsLimitedGrant(id) {
		r.t.Errorf("of %s it says %v", id, apps)
	}
	return apps
}

// A client that names an app is let into that alone, and into what the person adds.
func TestConsentForOneApp(t *testing.T) {
	t.Parallel()
	r, bob := picks(t)
	c := r.remote(0)
	path := c.authorizePath("resource", notesAt)
	page := bob.get(path).want(t, http.StatusOK)
	goldenPage(t, "consent-app", page.body)
	for _, not := range []string{"Diary", "bob.localhost", `value="maya/app2" checked`, `value="maya/*" checked`} {
		if strings.Contains(page.body, not) {
			t.Errorf("it shows %s", not)
		}
	}
	for _, tt := range []struct {
		form []string
		want []string // nil for all
	}{
		{[]string{"app", "maya/app1"}, []string{"app1"}},
		{[]string{"app", "maya/app1", "app", "maya/app2"}, []string{"app1", "app2"}},
		{[]string{"app", "maya/app2"}, []string{"app2"}},
		{[]string{"app", "maya/app1", "app", "maya/*"}, nil},
		{[]string{"app", "maya/*"}, nil},
	} {
		code := c.param(bob.post(path, append(tt.form, "decision", "allow", "pick", "apps")...), "code")
		got := c.exchange(code).want(t, http.StatusOK).tokens(t)
		if opens := r.opens(got.AccessToken); !slices.Equal(opens, tt.want) {
			t.Errorf("%v: it opens %v", tt.form, opens)
		}
	}
	// A form that says nothing of apps.
	got := c.exchange(c.param(bob.post(path, "decision", "allow", "computer", "bob"), "code")).want(t, http.StatusOK).tokens(t)
	if opens := r.opens(got.AccessToken); !slices.Equal(opens, []string{"app1"}) {
		t.Errorf("it opens %v", opens)
	}
	for what, tt := range map[string]struct {
		form   []string
		status int
	}{
		"none":                       {nil, http.StatusBadRequest},
		"one they may not open":      {[]string{"app", "maya/app3"}, http.StatusForbidden},
		"that besides":               {[]string{"app", "maya/app1", "app", "maya/app3"}, http.StatusForbidden},
		"of another computer":        {[]string{"app", "bob/b1"}, http.StatusBadRequest},
		"all of another computer":    {[]string{"app", "bob/*"}, http.StatusBadRequest},
		"of two computers":           {[]string{"app", "maya/app1", "app", "bob/b1"}, http.StatusBadRequest},
		"its id on another computer": {[]string{"app", "maya/b1"}, http.StatusForbidden},
		"no id":                      {[]string{"app", "maya/"}, http.StatusForbidden},
		"no slash":                   {[]string{"app", "maya"}, http.StatusForbidden},
		"nothing":                    {[]string{"app", ""}, http.StatusBadRequest},
	} {
		if a := bob.post(path, append(tt.form, "decision", "allow", "pick", "apps")...); a.StatusCode != tt.status || !strings.Contains(a.body, `role="alert"`) {
			t.Errorf("%s: HTTP %d", what, a.StatusCode)
		}
	}
	// Asking for a computer is to ask as ever, with that one preselected.
	page = bob.get(c.authorizePath("resource", "https://maya.localhost:8443/")).want(t, http.StatusOK)
	if !strings.Contains(page.body, `value="maya" checked`) || strings.Contains(page.body, `name="app"`) {
		t.Errorf("for a computer it shows\n%s", page.body)
	}
}

// What is no app that the person may open goes back to the client, once they are known.
func TestInvalidTargetGoesBack(t *testing.T) {
	t.Parallel()
	r, bob := picks(t)
	c := r.remote(0)
	for _, paths := range []string{
		c.authorizePath("resource", "https://diary.maya.localhost:8443"), c.authorizePath("resource", "x"),
		c.authorizePath("resource", notesAt) + "&resource=https%3A%2F%2Fnotes.bob.localhost%3A8443", c.authorizePath() + "&resource=",
	} {
		for _, a := range []answer{bob.get(paths), bob.post(paths, "decision", "allow", "computer", "maya")} {
			if back := clientAnswer(t, a); back.Get("error") != "invalid_target" || back.Has("code") || !back.Has("state") {
				t.Errorf("%s: back with %v", paths, back)
			}
		}
		if to := r.browser().get(paths).to(t); !strings.HasPrefix(to, "/signin?") {
			t.Errorf("a stranger is told of %s: %s", paths, to)
		}
	}
	// At the token endpoint it is an answer of 400.
	got := c.exchange(c.param(bob.post(c.authorizePath("resource", notesAt), "decision", "allow"), "code"), "resource", notesAt).want(t, http.StatusOK).tokens(t)
	failed := c.token(false, "grant_type", "refresh_token", "refresh_token", got.RefreshToken, "resource", photosAt).want(t, http.StatusBadRequest)
	var said struct{ Error string }
	programs.Must(t, json.Unmarshal([]byte(failed.body), &said))
	if said.Error != "invalid_target" {
		t.Errorf("it says %s", failed.body)
	}
	got = c.token(false, "grant_type", "refresh_token", "refresh_token", got.RefreshToken, "resource", notesAt).want(t, http.StatusOK).tokens(t)
	if opens := r.opens(got.AccessToken); !slices.Equal(opens, []string{"app1"}) {
		t.Errorf("it opens %v", opens)
	}
	code := c.param(bob.post(c.authorizePath("resource", notesAt), "decision", "allow"), "code")
	c.exchange(code, "resource", photosAt).want(t, http.StatusBadRequest)
}

// For a client without a secret that names nothing the person picks: nothing is
// preselected, and nothing picked is nothing allowed.
func TestPublicClientIsLetIntoWhatIsPicked(t *testing.T) {
	t.Parallel()
	r, bob := picks(t)
	c := r.public(clientRedirect)
	path := c.authorizePath()
	page := bob.get(path).want(t, http.StatusOK)
	goldenPage(t, "consent-picks", page.body)
	if strings.Contains(page.body, " checked") {
		t.Errorf("something is preselected:\n%s", page.body)
	}
	bob.post(path, "decision", "allow", "computer", "maya").want(t, http.StatusBadRequest)
	bob.post(path, "decision", "allow", "pick", "apps").want(t, http.StatusBadRequest)
	bob.post(path, "decision", "allow", "pick", "apps", "app", "maya/app1", "app", "bob/b1").want(t, http.StatusBadRequest)
	got := c.exchange(c.param(bob.post(path, "decision", "allow", "pick", "apps", "app", "maya/app2"), "code")).want(t, http.StatusOK).tokens(t)
	if opens := r.opens(got.AccessToken); !slices.Equal(opens, []string{"app2"}) {
		t.Errorf("it opens %v", opens)
	}
}

// Where the agent does not know of single apps the page says so, and offers all.
func TestConsentWithAnOldAgent(t *testing.T) {
	t.Parallel()
	r, bob := picks(t)
	programs.Must(t, r.svc.Agents.NoteAppGrants(t.Context(), r.owner.Computer.ID, false))
	c := r.remote(0)
	path := c.authorizePath("resource", notesAt)
	page := bob.get(path).want(t, http.StatusOK)
	if !strings.Contains(page.body, "too old to let a program into single apps") || strings.Contains(page.body, "maya/app1") || !strings.Contains(page.body, `value="maya/*"`) {
		t.Errorf("it shows\n%s", page.body)
	}
	bob.post(path, "decision", "allow", "pick", "apps", "app", "maya/app1").want(t, http.StatusForbidden)
	bob.post(path, "decision", "allow").want(t, http.StatusForbidden)
	got := c.exchange(c.param(bob.post(path, "decision", "allow", "pick", "apps", "app", "maya/*"), "code"), "resource", notesAt).want(t, http.StatusOK).tokens(t)
	if opens := r.opens(got.AccessToken); opens != nil {
		t.Errorf("it opens %v", opens)
	}
}

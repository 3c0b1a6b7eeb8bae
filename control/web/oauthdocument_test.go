package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

const editorID = "https://editor.example/client.json"

// describing is a rig where clients may describe themselves at editor.example, where each
// address has a document of this name; asked counts who fetches.
func describing(t *testing.T) (r *rig, c *remote, name *atomic.Value, asked *atomic.Int32) {
	t.Helper()
	name, asked = &atomic.Value{}, &atomic.Int32{}
	name.Store("Claude")
	r = newRig(t, func(cfg *control.Config) {
		cfg.Fetch = func(_ context.Context, address string) ([]byte, time.Duration, error) {
			asked.Add(1)
			return fmt.Appendf(nil, `{"client_id":%q,"client_name":%q,"redirect_uris":["http://localhost/cb","https://editor.example/cb"]}`, address, name.Load()), time.Hour, nil
		}
	})
	c = r.remote(oauth2.AuthStyleInParams)
	c.client.ID, c.config.ClientID, c.config.ClientSecret, c.config.RedirectURL = editorID, editorID, "", "http://localhost:49152/cb"
	return r, c, name, asked
}

// fieldOf is the value of a hidden field.
func fieldOf(t *testing.T, body, name string) string {
	t.Helper()
	_, after, found := strings.Cut(body, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(after, `"`)
	if !found {
		t.Errorf("no field %s: %s", name, body)
	}
	return value
}

// A client that describes itself is asked for only in the name of somebody who is signed
// in; the page shows its host, and what it calls itself as no more than that.
func TestClientThatDescribesItself(t *testing.T) {
	t.Parallel()
	r, c, _, asked := describing(t)
	maya := r.signedIn("maya@example.com")
	supported := func() bool {
		return strings.Contains(r.browser().get(controlapi.PathDiscovery).want(t, http.StatusOK).body, "client_id_metadata_document_supported")
	}
	maya.get(c.authorizePath()).refused(t, http.StatusBadRequest, controlapi.CodeInvalidClient)
	if supported() {
		t.Error("it is said that clients may describe themselves")
	}
	programs.Must(t, r.svc.Clients.Allow(t.Context(), "editor.example"))
	if !supported() {
		t.Error("it is not said that clients may describe themselves")
	}
	stranger := r.browser()
	if to := stranger.get(c.authorizePath()).to(t); !strings.HasPrefix(to, "/signin?") {
		t.Errorf("a stranger is led to %s", to)
	}
	for _, id := range []string{"https://elsewhere.example/client.json", "http://editor.example/client.json", editorID + "?a=b", editorID + "#f"} {
		for _, b := range []*browser{stranger, maya} {
			b.get(c.authorizePath("client_id", id)).refused(t, http.StatusBadRequest, controlapi.CodeInvalidClient)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Fatalf("asked %d times for nobody", n)
	}

	page := maya.get(c.authorizePath()).want(t, http.StatusOK)
	goldenPage(t, "consent-described", page.body)
	for _, redirect := range []string{"https://elsewhere.example/cb", "http://localhost:49152/other", "cursor://cb"} {
		maya.get(c.authorizePath("redirect_uri", redirect)).refused(t, http.StatusBadRequest, controlapi.CodeInvalidRedirectURI)
	}
	elsewhere := maya.get(c.authorizePath("redirect_uri", "https://editor.example/cb")).want(t, http.StatusOK).body
	if strings.Contains(elsewhere, "program on your own computer") || !strings.Contains(elsewhere, "Afterwards you go to <b>editor.example</b>.") {
		t.Errorf("another redirect URI: %s", elsewhere)
	}
	if problem := must(url.Parse(maya.get(c.authorizePath("scope", "all")).to(t))).Query().Get("error"); problem != "invalid_scope" {
		t.Errorf("a wrong request leads back with %q", problem)
	}

	to := must(url.Parse(maya.post(c.authorizePath(), "decision", "allow", "app", "maya/*", "client", fieldOf(t, page.body, "client")).to(t)))
	tokens := c.exchange(to.Query().Get("code"), "redirect_uri", c.config.RedirectURL).want(t, http.StatusOK).tokens(t)
	if id := claims(t, tokens.AccessToken)["client_id"]; id != editorID {
		t.Errorf("the token is of %v", id)
	}
	if account := maya.get("/account").want(t, http.StatusOK).body; !strings.Contains(account, "editor.example") {
		t.Errorf("the account does not say whose client it is: %s", account)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	programs.Must(t, r.svc.Clients.Disallow(t.Context(), "editor.example"))
	c.refresh(tokens.RefreshToken).refused(t, http.StatusBadRequest, controlapi.CodeInvalidClient)
}

// Who is not signed in is led back to the request of a client that nobody here has read yet,
// also to one that only its client can be told is wrong, and the sign-in page says whose it is.
func TestSignInLeadsBackToAClientThatIsNew(t *testing.T) {
	t.Parallel()
	r, c, _, _ := describing(t)
	programs.Must(t, r.svc.Clients.Allow(t.Context(), "editor.example"))
	signIns := map[string]func(*browser, string, string) string{c.authorizePath(): (*browser).signIn, c.authorizePath("scope", "all"): (*browser).signInAgain}
	for _, path := range []string{c.authorizePath(), c.authorizePath("scope", "all")} {
		stranger := r.browser()
		page := stranger.get(stranger.get(path).to(t)).want(t, http.StatusOK).body
		if !strings.Contains(page, "editor.example") {
			t.Errorf("the sign-in page does not say who asks: %s", page)
		}
		if back := signIns[path](stranger, "maya@example.com", path); back != path {
			t.Errorf("signed in for %s, led to %s", path, back)
		}
	}
	elsewhere := c.authorizePath("client_id", "https://elsewhere.example/client.json")
	if page := r.browser().get("/signin?return="+url.QueryEscape(elsewhere)).want(t, http.StatusOK).body; strings.Contains(page, "elsewhere.example") {
		t.Errorf("signing in leads to a client of a host that is not allowed: %s", page)
	}
}

// Weakness: what a person allowed is not what the client says of itself by then. Checked: a
// name that has changed since the page was shown is shown anew, and no code goes out.
func TestDocumentThatChangesIsAskedAnew(t *testing.T) {
	t.Parallel()
	r, c, name, _ := describing(t)
	programs.Must(t, r.svc.Clients.Allow(t.Context(), "editor.example"))
	maya := r.signedIn("maya@example.com")
	shown := fieldOf(t, maya.get(c.authorizePath()).want(t, http.StatusOK).body, "client")
	programs.Must(t, r.svc.Clients.Remove(t.Context(), editorID)) // so that it is read at once
	name.Store("Another")
	for _, version := range []string{shown, "", "x"} {
		page := maya.post(c.authorizePath(), "decision", "allow", "app", "maya/*", "client", version).want(t, http.StatusConflict)
		if !strings.Contains(page.body, "has changed meanwhile") || !strings.Contains(page.body, "Another") {
			t.Errorf("with %q: %s", version, page.body)
		}
		shown = fieldOf(t, page.body, "client")
	}
	maya.post(c.authorizePath(), "decision", "allow", "app", "maya/*", "client", shown).to(t)
	programs.Must(t, r.svc.Clients.Remove(t.Context(), editorID))
	name.Store("")
	if page := maya.get(c.authorizePath()).want(t, http.StatusOK).body; strings.Contains(page, "calls itself") {
		t.Errorf("one that claims no name: %s", page)
	}
}

package admin

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// clients are an Admin asked over its socket, and within the process.
func clients(t *testing.T, test func(t *testing.T, a *madeAdmin, c *Client)) {
	t.Helper()
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		a := newAdmin(t)
		c := a.Direct()
		defer c.Close()
		test(t, a, c)
	})
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		a := newAdmin(t)
		dir := t.TempDir()
		serve(t, a, dir)
		c := programs.Got(Dial(dir))(t)
		defer c.Close()
		test(t, a, c)
	})
}

// A client's secret is shown when it is made, and never again; a new one ends
// the old one.
func TestOAuthClients(t *testing.T) {
	t.Parallel()
	clients(t, func(t *testing.T, a *madeAdmin, c *Client) {
		ctx := t.Context()
		if list, err := c.OAuthClients(ctx); err != nil || list == nil || len(list) != 0 {
			t.Errorf("before any: %v %v", list, err)
		}
		uris := []string{"https://notes.example/callback", "http://127.0.0.1:7777/cb"}
		made, err := c.AddOAuthClient(ctx, AddOAuthClient{Name: "Pocket Notes", RedirectURIs: uris})
		if err != nil || made.ClientID == "" || len(made.ClientSecret) != 43 {
			t.Fatalf("AddOAuthClient: %+v %v", made, err)
		}
		works := func(s OAuthSecret) bool {
			t.Helper()
			err := a.cfg.Clients.Authenticate(ctx, control.Credentials{ID: s.ClientID, Secret: s.ClientSecret})
			if err != nil && !control.IsRefusal(err, controlapi.CodeInvalidClient) {
				t.Fatal(err)
			}
			return err == nil
		}
		if !works(made) {
			t.Error("the secret shown does not work")
		}
		list, err := c.OAuthClients(ctx)
		if err != nil || len(list) != 1 || list[0].ID != made.ClientID || list[0].Name != "Pocket Notes" ||
			!slices.Equal(list[0].RedirectURIs, uris) || list[0].CreatedAt.IsZero() || !list[0].RotatedAt.IsZero() {
			t.Errorf("OAuthClients: %+v %v", list, err)
		}

		again, err := c.RotateOAuthClient(ctx, made.ClientID)
		if err != nil || again.ClientID != made.ClientID || again.ClientSecret == made.ClientSecret {
			t.Fatalf("RotateOAuthClient: %+v %v", again, err)
		}
		if works(made) || !works(again) {
			t.Errorf("after the rotation the old secret works: %t, the new one: %t", works(made), works(again))
		}
		if list, err := c.OAuthClients(ctx); err != nil || len(list) != 1 || list[0].RotatedAt.IsZero() {
			t.Errorf("after the rotation: %+v %v", list, err)
		}

		public, err := c.AddOAuthClient(ctx, AddOAuthClient{Name: "Pocket Editor", RedirectURIs: []string{"cursor://cb"}, Public: true})
		if err != nil || public.ClientSecret != "" || !works(public) {
			t.Errorf("a public one: %+v %v", public, err)
		}
		if _, err := c.RotateOAuthClient(ctx, public.ClientID); !isRefusal(err) || !strings.Contains(err.Error(), "has no secret") {
			t.Errorf("a new secret for a public one: %v", err)
		}
		if list, err := c.OAuthClients(ctx); err != nil || len(list) != 2 || list[0].Public || !list[1].Public {
			t.Errorf("with a public one: %+v %v", list, err)
		}

		programs.Must(t, c.RemoveOAuthClient(ctx, made.ClientID))
		if works(again) {
			t.Error("a removed client's secret works")
		}
		for _, id := range []string{made.ClientID, "x", "../accounts", strings.Repeat("a", 26), "a/b"} {
			if err := c.RemoveOAuthClient(ctx, id); !isRefusal(err) {
				t.Errorf("removing %q: %v", id, err)
			}
			if _, err := c.RotateOAuthClient(ctx, id); !isRefusal(err) {
				t.Errorf("rotating %q: %v", id, err)
			}
		}
	})
}

// What a client may not be is refused with a sentence, and leaves nothing.
func TestOAuthClientRefused(t *testing.T) {
	t.Parallel()
	a := newAdmin(t)
	c := a.Direct()
	defer c.Close()
	const good = "https://notes.example/callback"
	for name, ask := range map[string]AddOAuthClient{
		"no name":              {Name: "", RedirectURIs: []string{good}},
		"an invisible name":    {Name: "\u200b", RedirectURIs: []string{good}},
		"a name of two lines":  {Name: "Notes\r\nX: y", RedirectURIs: []string{good}},
		"a long name":          {Name: strings.Repeat("n", 81), RedirectURIs: []string{good}},
		"no redirect URI":      {Name: "Notes", RedirectURIs: nil},
		"the same twice":       {Name: "Notes", RedirectURIs: []string{good, good}},
		"plain http":           {Name: "Notes", RedirectURIs: []string{"http://notes.example/callback"}},
		"a fragment":           {Name: "Notes", RedirectURIs: []string{good + "#x"}},
		"an empty fragment":    {Name: "Notes", RedirectURIs: []string{good + "#"}},
		"a relative reference": {Name: "Notes", RedirectURIs: []string{"/callback"}},
		"a user name":          {Name: "Notes", RedirectURIs: []string{"https://maya@notes.example/"}},
		"a script":             {Name: "Notes", RedirectURIs: []string{"javascript:alert(1)"}},
		"data":                 {Name: "Notes", RedirectURIs: []string{"data:text/html,x"}},
		"a line break":         {Name: "Notes", RedirectURIs: []string{good + "\r\n"}},
		"a wildcard":           {Name: "Notes", RedirectURIs: []string{"https://*.notes.example/"}},
		"capital letters":      {Name: "Notes", RedirectURIs: []string{"https://Notes.example/"}},
		"eleven":               {Name: "Notes", RedirectURIs: slices.Repeat([]string{good}, 11)},
	} {
		if _, err := c.AddOAuthClient(t.Context(), ask); !isRefusal(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := c.OAuthClients(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("after refusals: %+v %v", list, err)
	}
}

// A rotation is seen at once: the new key is made known, the old one signs on.
func TestKeys(t *testing.T) {
	t.Parallel()
	clients(t, func(t *testing.T, a *madeAdmin, c *Client) {
		ctx := t.Context()
		before, err := c.Keys(ctx)
		if err != nil || len(before) != 1 || !before[0].Signs || before[0].PublicKey != a.cfg.Keys.Signing() {
			t.Fatalf("Keys: %+v %v", before, err)
		}
		after, err := c.RotateKey(ctx, false)
		if err != nil || len(after) != 2 || after[0].Signs || !after[1].Signs || after[1].PublicKey != before[0].PublicKey {
			t.Fatalf("RotateKey: %+v %v", after, err)
		}
		if got, want := after[1].VerifiesUntil, after[0].SignsFrom.Add(controlapi.GrantMemory); !got.Equal(want) {
			t.Errorf("the old key is accepted until %v, want %v", got, want)
		}
		if keys := a.cfg.Keys.Public(); len(keys) != 2 || keys[0] != after[0].PublicKey {
			t.Errorf("published are %v", keys)
		}
		if _, err := c.RotateKey(ctx, false); !isRefusal(err) {
			t.Errorf("a rotation during another: %v", err)
		}
		now, err := c.RotateKey(ctx, true)
		if err != nil || len(now) != 1 || !now[0].Signs || now[0].PublicKey == after[0].PublicKey || now[0].PublicKey == before[0].PublicKey {
			t.Errorf("after a leak: %+v %v", now, err)
		}
	})
}

// Every route with a body takes only what it knows, and only by its method.
func TestOAuthClientRequests(t *testing.T) {
	t.Parallel()
	a := newAdmin(t)
	c := a.Direct()
	defer c.Close()
	if err := c.do(t.Context(), http.MethodPost, "/clients", map[string]any{"name": "n", "redirectUris": "x"}, nil); !isRefusal(err) {
		t.Errorf("a wrong type: %v", err)
	}
	if err := c.do(t.Context(), http.MethodPost, "/clients", map[string]any{"name": "n", "secret": "x"}, nil); !isRefusal(err) {
		t.Errorf("an unknown field: %v", err)
	}
	if err := c.do(t.Context(), http.MethodGet, "/clients/"+strings.Repeat("a", 26), nil, nil); err == nil {
		t.Error("a client can be read alone")
	}
}

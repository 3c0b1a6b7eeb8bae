package control

import (
	"fmt"
	"strings"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// A public client has no secret, in its row neither, and sends none; one that has a secret
// sends it.
func TestPublicClients(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	public := ok[Client](t)(b.Clients.AddPublic(ctx, "Pocket Editor", []string{"cursor://anysphere/cb"}))
	confidential := b.registered()
	for what, tt := range map[string]struct {
		Credentials
		fine bool
	}{
		"the id alone":             {Credentials{ID: public.ID}, true},
		"a secret that it has not": {Credentials{ID: public.ID, Secret: aSecret()}, false},
		"another's secret":         {Credentials{ID: public.ID, Secret: confidential.Secret}, false},
		"the id of a confidential": {Credentials{ID: confidential.ID}, false},
		"of nobody":                {Credentials{ID: anID()}, false},
		"nothing":                  {Credentials{}, false},
	} {
		if err := b.Clients.Authenticate(ctx, tt.Credentials); (err == nil) != tt.fine || err != nil && !IsRefusal(err, controlapi.CodeInvalidClient) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := b.Clients.Rotate(ctx, public.ID)
	wantRefusal(t, err, controlapi.CodeInvalid)
	programs.Must(t, b.Clients.Authenticate(ctx, Credentials{ID: public.ID}))
	for _, c := range ok[[]Client](t)(b.Clients.List(ctx)) {
		if c.Public != (c.ID == public.ID) {
			t.Errorf("listed %+v", c)
		}
	}
	programs.Must(t, b.Clients.Remove(ctx, public.ID))
	wantRefusal(t, b.Clients.Authenticate(ctx, Credentials{ID: public.ID}), controlapi.CodeInvalidClient)
}

// What may be registered for a public client alone, and what for none.
func TestRedirectURIsOfPublicClients(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for uri, fine := range map[string]bool{
		"cursor://anysphere.cursor-deeplink/mcp/auth": true,
		"claude:/callback":                            true,
		"vscode://vscode.github-authentication/done":  true,
		"http://[::1]/cb":                             true,
		"http://[::1]:3000/cb?a=b":                    true,

		"https://[::1]/cb":           false,
		"http://[::1%25lo]/cb":       false,
		"http://[::2]/cb":            false,
		"http://[::1]:0/cb":          false,
		"http://[::1]:65536/cb":      false,
		"http://[::1]@evil.example/": false,
		"http://me@[::1]/cb":         false,
		"http://[::1]/../cb":         false,
		"http://[::1]/cb?iss=x":      false,
		"http://[::1]/cb?code":       false,
		"http://[::1]/*":             false,
		"localhost:3000/cb":          false,
		"cursor:cb":                  false,
		"Cursor://cb":                false,
		"cursor://cb#x":              false,
		"cursor://me@cb/":            false,
		"javascript:/alert(1)":       false,
		"vbscript:/x":                false,
		"data:/text/html,x":          false,
		"file:/etc/passwd":           false,
		"blob:/x":                    false,
		"filesystem:/x":              false,
		"about:/blank":               false,
		"ws://app.example/":          false,
		"wss://app.example/":         false,
		"view-source:/x":             false,
		"chrome://settings/":         false,
		"chrome-extension://abc/cb":  false,
		"ms-msdt:/id":                false,
		"search-ms:/x":               false,
		"http:/evil.example":         false,
	} {
		_, err := b.Clients.AddPublic(t.Context(), "Pocket Editor", []string{uri})
		if (err == nil) != fine || err != nil && !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("%q: %v", uri, err)
		}
		_, _, err = b.Clients.Add(t.Context(), "Pocket Notes", []string{uri})
		wantRefusal(t, err, controlapi.CodeInvalid)
	}
}

// Of a public client's loopback address the port does not count, and everything else does.
func TestLoopbackAtAnyPort(t *testing.T) {
	t.Parallel()
	own := []string{"http://127.0.0.1/cb", "http://[::1]:3000/cb", "http://localhost:3000/cb?a=b", "http://app.localhost:3000/cb", "https://127.0.0.1:3000/cb", "cursor://cb:3000/"}
	confidential := client{RedirectURIs: own}
	public := client{RedirectURIs: own, Public: true}
	for _, uri := range own {
		if !public.leadsTo(uri) || !confidential.leadsTo(uri) {
			t.Errorf("%s is not its own", uri)
		}
	}
	for uri, fine := range map[string]bool{
		"http://127.0.0.1:1/cb":           true,
		"http://127.0.0.1:65535/cb":       true,
		"http://[::1]:40000/cb":           true,
		"http://[::1]/cb":                 true,
		"http://localhost:40000/cb?a=b":   true,
		"http://localhost/cb?a=b":         true,
		"http://127.0.0.1:0/cb":           false,
		"http://127.0.0.1:00080/cb":       false,
		"http://127.0.0.1:080/cb":         false,
		"http://127.0.0.1:65536/cb":       false,
		"http://127.0.0.1:99999999999/cb": false,
		"http://127.0.0.1:/cb":            false,
		"http://127.0.0.1:+80/cb":         false,
		"http://127.0.0.1:80":             false,
		"http://127.0.0.1:80/":            false,
		"http://127.0.0.1:80/CB":          false,
		"http://127.0.0.1:80/cb/":         false,
		"http://127.0.0.1:80/c%62":        false,
		"http://127.0.0.1:80/x/../cb":     false,
		"http://127.0.0.1:80//cb":         false,
		"http://127.0.0.1:80/cb?a":        false,
		"http://127.0.0.1:80/cb#":         false,
		"http://127.0.0.1:80/cb\n":        false,
		"\nhttp://127.0.0.1:80/cb":        false,
		"HTTP://127.0.0.1:80/cb":          false,
		"https://127.0.0.1:80/cb":         false,
		"http:\\\\127.0.0.1:80/cb":        false,
		"http://127.0.0.1:80\\@evil/cb":   false,
		"http://127.0.0.1:80@evil/cb":     false,
		"http://me@127.0.0.1:80/cb":       false,
		"http://@127.0.0.1:80/cb":         false,
		"http://127.0.0.1:80:81/cb":       false,
		"http://127.0.0.1.evil:80/cb":     false,
		"http://127.0.0.2:80/cb":          false,
		"http://127.1:80/cb":              false,
		"http://%31%32%37.0.0.1:80/cb":    false,
		"http://127.0.0.1%00:80/cb":       false,
		"http://localhost:80/cb":          false, // another host than the one with that path
		"http://LOCALHOST:80/cb?a=b":      false,
		"http://localhost.:80/cb?a=b":     false,
		"http://localhost:80/cb?b=a":      false,
		"http://app.localhost:80/cb":      false,
		"http://[::1%25lo]:80/cb":         false,
		"http://[0:0:0:0:0:0:0:1]:80/cb":  false,
		"http://[::ffff:127.0.0.1]/cb":    false,
		"http://::1:80/cb":                false,
		"cursor://cb:3001/":               false,
		"https://127.0.0.1:3001/cb":       false,
	} {
		if public.leadsTo(uri) != fine {
			t.Errorf("%q is one of a public client's: %t", uri, !fine)
		}
		if confidential.leadsTo(uri) {
			t.Errorf("%q is one of a confidential client's", uri)
		}
	}
}

// Both kinds of client find each other's doors closed: a code and a token are good for
// their own client alone, and a try of another's uses nothing up.
func TestPublicAndConfidentialKeepApart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	owner := Account{ID: b.owner().AccountID}
	confidential := b.registered()
	publicOf := func(name string) registered {
		c := ok[Client](t)(b.Clients.AddPublic(t.Context(), name, []string{appRedirect}))
		return registered{b, Credentials{ID: c.ID}, appRedirect}
	}
	one, other := publicOf("One"), publicOf("Other")
	unproven := confidential
	unproven.Secret = ""
	for what, tt := range map[string]struct {
		of, thief registered
		code      string
	}{
		"public by public":                {one, other, controlapi.CodeInvalidGrant},
		"public by confidential":          {one, confidential, controlapi.CodeInvalidGrant},
		"confidential by public":          {confidential, one, controlapi.CodeInvalidGrant},
		"confidential without its secret": {confidential, unproven, controlapi.CodeInvalidClient},
	} {
		code := ok[string](t)(tt.of.code(owner, "maya"))
		_, err := tt.thief.exchange(code)
		if !IsRefusal(err, tt.code) {
			t.Errorf("%s, a code: %v", what, err)
		}
		tokens := ok[Tokens](t)(tt.of.exchange(code))
		_, err = tt.thief.use(tokens.Refresh)
		if !IsRefusal(err, tt.code) {
			t.Errorf("%s, a token: %v", what, err)
		}
		if err := b.Grants.Revoke(t.Context(), tt.thief.Credentials, tokens.Refresh); err != nil && !IsRefusal(err, controlapi.CodeInvalidClient) {
			t.Errorf("%s, revoking: %v", what, err)
		}
		if _, err := tt.of.use(tokens.Refresh); err != nil {
			t.Errorf("%s: its own client is refused then: %v", what, err)
		}
	}

	// Without an id, a token does not say whose it is to one that proves nothing.
	tokens := one.granted(owner, "maya")
	for _, cred := range []Credentials{{}, {Secret: aSecret()}} {
		_, err := b.Grants.Refresh(t.Context(), cred, tokens.Refresh)
		wantRefusal(t, err, controlapi.CodeInvalidClient)
	}
	programs.Must(t, b.Clients.Remove(t.Context(), one.ID))
	_, err := one.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeInvalidClient)
	wantRefusal(t, b.Grants.Revoke(t.Context(), one.Credentials, tokens.Refresh), controlapi.CodeInvalidClient)
}

// A client's own wish ends the grant of the token and no other; what is no token of its
// own, or none that holds, ends nothing and is told nothing.
func TestClientRevokes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	owner := Account{ID: b.owner().AccountID}
	c, other := b.registered(), b.registered()
	revoke := func(who registered, token string) {
		t.Helper()
		programs.Must(t, b.Grants.Revoke(t.Context(), who.Credentials, token))
	}
	kept := c.granted(owner, "maya")
	for what, of := range map[string]func(Tokens) string{
		"refresh": func(tk Tokens) string { return tk.Refresh }, "access": func(tk Tokens) string { return tk.Access },
	} {
		used := c.granted(owner, "maya")
		tokens := ok[Tokens](t)(c.use(used.Refresh))
		forged := tokens.Access[:len(tokens.Access)-4] + "AAAA"
		head, rest, _ := strings.Cut(tokens.Access, ".")
		for _, no := range []string{
			used.Refresh, tokens.Refresh + "A", tokens.Refresh[:len(tokens.Refresh)-1], forged, head + ".e30." + rest, "", "x", "a.b.c",
			strings.SplitN(tokens.Refresh, ".", 2)[0] + "." + aSecret(),
		} {
			revoke(c, no)
		}
		revoke(other, of(tokens))
		wantRefusal(t, b.Grants.Revoke(t.Context(), Credentials{ID: c.ID, Secret: aSecret()}, of(tokens)), controlapi.CodeInvalidClient)
		wantRefusal(t, b.Grants.Revoke(t.Context(), Credentials{ID: c.ID}, of(tokens)), controlapi.CodeInvalidClient)
		tokens = ok[Tokens](t)(c.use(tokens.Refresh))

		revoke(c, of(tokens))
		revoke(c, of(tokens))
		_, err := c.use(tokens.Refresh)
		if !IsRefusal(err, controlapi.CodeAccessDenied) {
			t.Errorf("after revoking by the %s token: %v", what, err)
		}
	}
	kept = ok[Tokens](t)(c.use(kept.Refresh))

	// One that is over is as good as none.
	b.clock.Add(controlapi.TokenLife)
	revoke(c, kept.Access)
	kept = ok[Tokens](t)(c.use(kept.Refresh))
	if list := fmt.Sprint(ok[[]AccountGrant](t)(b.Grants.OfAccount(t.Context(), owner.ID))); strings.Count(list, "Pocket Notes") != 1 {
		t.Errorf("left are %s", list)
	}
}

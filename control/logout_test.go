package control

import (
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Who signs out at a provider is signed out here: of that session where the provider names
// it, else of all that it opened; and on every computer. Sessions of other making stay.
func TestProviderSignsOut(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	e := c.owner()
	programs.Must(t, c.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes", Live: true}}}))
	maya := c.joined(e.Computer.ID, "maya@club.example", "app1")
	epoch := func() int64 { return c.rowOf(e.Computer.ID, maya.ID).Epoch }
	byMail := c.session("", maya.ID)
	one, two := c.in(claimsOf("1", maya.Email, "sid", "s1")), c.in(claimsOf("1", maya.Email, "sid", "s2"))
	open := func(token string) bool { _, err := c.Sessions.Of(t.Context(), token); return err == nil }
	out := func(claims map[string]any) error {
		return c.Providers.SignedOut(t.Context(), "club", c.i.Logout(claims))
	}
	is := func(what string, first, second, raised bool, before int64) {
		t.Helper()
		if open(one.Token) != first || open(two.Token) != second || !open(byMail) || (epoch() > before) != raised {
			t.Errorf("%s: %t, %t, by mail %t, epoch %d after %d", what, open(one.Token), open(two.Token), open(byMail), epoch(), before)
		}
	}
	was := epoch()
	programs.Must(t, out(map[string]any{"sid": "unknown"}))
	programs.Must(t, out(map[string]any{"sub": "unknown"}))
	is("unknown", true, true, false, was)
	programs.Must(t, out(map[string]any{"sid": "s1"}))
	is("one by sid", false, true, true, was)
	one, was = c.in(claimsOf("1", maya.Email, "sid", "s3")), epoch()
	programs.Must(t, out(map[string]any{"sid": "s3", "sub": "1"}))
	is("one by both", false, true, true, was)
	one, was = c.in(claimsOf("1", maya.Email)), epoch()
	programs.Must(t, out(map[string]any{"sub": "1"}))
	is("all by sub", false, false, true, was)
}

// Weakness: whoever sends something like a logout token signs people out, or does so again
// and again with an old one. Checked: each is refused, and ends nothing.
func TestLogoutTokenIsRefused(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	maya := ok[Account](t)(c.Accounts.Ensure(t.Context(), "maya@club.example"))
	in := c.in(claimsOf("1", maya.Email))
	now := c.clock.Now()
	event := "http://schemas.openid.net/event/backchannel-logout"
	for what, change := range map[string]map[string]any{
		"another client":      {"aud": "another"},
		"another issuer":      {"iss": c.other.URL},
		"a nonce":             {"nonce": "x"},
		"no event":            {"events": nil},
		"another event":       {"events": map[string]any{"https://schemas.example/other": map[string]any{}}},
		"an event of nothing": {"events": map[string]any{event: nil}},
		"an event of a word":  {"events": map[string]any{event: "x"}},
		"no jti":              {"jti": nil},
		"nobody":              {"sub": nil},
		"no end":              {"exp": nil},
		"over":                {"exp": now.Add(-time.Second).Unix()},
		"never over":          {"exp": now.Add(48 * time.Hour).Unix()},
		"no time":             {"iat": nil},
		"from the future":     {"iat": now.Add(6 * time.Minute).Unix()},
	} {
		claims := map[string]any{"sub": "1"}
		for name, value := range change {
			claims[name] = value
		}
		if err := c.Providers.SignedOut(t.Context(), "club", c.i.Logout(claims)); !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, typ := range []string{"at+jwt", "application/at+jwt", "secevent+jwt", "id_token", "logout", "xlogout+jwt"} {
		if err := c.Providers.SignedOut(t.Context(), "club", c.i.LogoutAs(typ, map[string]any{"sub": "1"})); !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("a typ of %s: %v", typ, err)
		}
	}
	for _, typ := range []string{"", "JWT", "jwt", "application/logout+jwt", "Logout+JWT"} { // somebody's who is not known
		if err := c.Providers.SignedOut(t.Context(), "club", c.i.LogoutAs(typ, map[string]any{"sub": "2"})); err != nil {
			t.Errorf("a typ of %q: %v", typ, err)
		}
	}
	token := c.i.Logout(map[string]any{"sub": "1"})
	for what, token := range map[string]string{"none": "", "no token": "x", "another's": c.other.Logout(map[string]any{"iss": c.i.URL, "sub": "1"})} {
		if err := c.Providers.SignedOut(t.Context(), "club", token); !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantRefusal(t, c.Providers.SignedOut(t.Context(), "other", token), controlapi.CodeInvalid)
	wantRefusal(t, c.Providers.SignedOut(t.Context(), "nobody", token), controlapi.CodeNotFound)
	ok[Session](t)(c.Sessions.Of(t.Context(), in.Token))
	programs.Must(t, c.Providers.SignedOut(t.Context(), "club", token))
	_, err := c.Sessions.Of(t.Context(), in.Token)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	again := c.in(claimsOf("1", maya.Email))
	wantRefusal(t, c.Providers.SignedOut(t.Context(), "club", token), controlapi.CodeInvalid)
	ok[Session](t)(c.Sessions.Of(t.Context(), again.Token))
}

package control

import (
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/issuer"
	"porchlight/test/programs"
)

// Weakness: what was begun elsewhere, or answered by somebody else, signs in. Checked: each
// is refused and opens no session: another browser's state, or none; another provider's answer
// at this one's address, or this one's at another's (mix-up); a code that another sign-in got
// (code injection); one that came twice; and one that came late.
func TestProviderWayBackIsRefused(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	ok[Account](t)(c.Accounts.Ensure(t.Context(), "maya@club.example"))
	maya := claimsOf("1", "maya@club.example")
	with := func(to string, fields ...string) string {
		u := programs.Got(url.Parse(to))(t)
		q := u.Query()
		for i := 0; i < len(fields); i += 2 {
			q.Set(fields[i], fields[i+1])
		}
		u.RawQuery = q.Encode()
		return u.String()
	}
	for what, change := range map[string]func(kept, to *string){
		"no cookie":              func(kept, to *string) { *kept = "" },
		"another browser's":      func(kept, to *string) { _, *kept = c.begins() },
		"a cookie of no sealing": func(kept, to *string) { *kept = strings.Replace(*kept, ".", "A.", 1) },
		"another state":          func(kept, to *string) { *to = with(*to, "state", aSecret()) },
		"no state":               func(kept, to *string) { *to = with(*to, "state", "") },
		"another issuer":         func(kept, to *string) { *to = with(*to, "iss", c.other.URL) },
		"no issuer":              func(kept, to *string) { *to = strings.Replace(*to, "iss=", "as=", 1) },
		"a state twice":          func(kept, to *string) { *to += "&state=x" },
		"another's address":      func(kept, to *string) { *to = strings.Replace(*to, "/club/", "/other/", 1) },
		"an address of nobody":   func(kept, to *string) { *to = strings.Replace(*to, "/club/", "/nobody/", 1) },
		"a code of another sign-in": func(kept, to *string) {
			address, _ := c.begins()
			u := programs.Got(url.Parse(c.i.SignIn(address, maya)))(t)
			*to = with(*to, "code", u.Query().Get("code"))
		},
		"no code":     func(kept, to *string) { *to = with(*to, "code", "") },
		"an error":    func(kept, to *string) { *to = with(*to, "error", "access_denied") },
		"later":       func(kept, to *string) { c.clock.Add(ProviderLife) },
		"clock ahead": func(kept, to *string) { c.clock.Add(-2 * clocksDiffer) },
	} {
		address, kept := c.begins()
		to := c.i.SignIn(address, maya)
		change(&kept, &to)
		in, prove, err := c.back(kept, to)
		if in.Token != "" || prove != "" || !IsRefusal(err, controlapi.CodeForbidden) && !IsRefusal(err, controlapi.CodeNotFound) {
			t.Errorf("%s: %+v, %v", what, in, err)
		}
	}
	address, kept := c.begins()
	c.i.SignIn(address, maya)
	if _, _, err := c.back(kept, c.i.SignIn(address, maya)); err != nil {
		t.Fatal(err)
	}
	_, _, err := c.back(kept, c.i.SignIn(address, maya)) // a new code, for the same state
	wantRefusal(t, err, controlapi.CodeForbidden)
	// One provider names itself, and was asked about another: the browser began here.
	address, kept, err = c.Providers.Begin(t.Context(), "other", "", false)
	programs.Must(t, err)
	_, _, err = c.back(kept, strings.Replace(c.i.SignIn(address, maya), "/club/", "/other/", 1))
	wantRefusal(t, err, controlapi.CodeForbidden)
	if n := c.rows("session/"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// Weakness: a token that is not for this client, sign-in or moment says who somebody is.
// Checked: each is refused, with the sentence that fits.
func TestProviderTokenIsRefused(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	ok[Account](t)(c.Accounts.Ensure(t.Context(), "maya@club.example"))
	const wrong, clock = "was not for this sign-in", "The clocks of Porch Club"
	now := c.clock.Now()
	for what, one := range map[string]struct {
		name string
		is   any
		says string
	}{
		"another nonce":          {"nonce", aSecret(), wrong},
		"no nonce":               {"nonce", nil, wrong},
		"another client":         {"aud", "another", wrong},
		"made for another":       {"azp", "another", wrong},
		"several, and for whom?": {"aud", []string{issuer.ClientID, "another"}, wrong},
		"another issuer":         {"iss", c.other.URL, wrong},
		"over":                   {"exp", now.Add(-time.Second).Unix(), clock},
		"from the future":        {"iat", now.Add(6 * time.Minute).Unix(), clock},
		"nobody":                 {"sub", "", wrong},
		"of something else":      {"events", map[string]any{}, wrong},
		"a sub without end":      {"sub", strings.Repeat("x", 256), wrong},
	} {
		c.i.Change("id_token", func(claims map[string]any) {
			if claims[one.name] = one.is; one.is == nil {
				delete(claims, one.name)
			}
		})
		in, prove, err := c.comes(claimsOf("1", "maya@club.example"))
		if in.Token != "" || prove != "" || err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %+v, %v", what, in, err)
		}
	}
	c.i.Change("id_token", nil)
	c.i.Change("userinfo", func(info map[string]any) { maps.Copy(info, claimsOf("2", "maya@club.example")) })
	if in, prove, err := c.comes(map[string]any{"sub": "1"}); in.Token != "" || prove != "" || err == nil {
		t.Errorf("an address of another: %+v, %v", in, err)
	}
	c.i.Change("userinfo", func(info map[string]any) { maps.Copy(info, claimsOf("1", "maya@club.example")) })
	c.in(map[string]any{"sub": "1"})
}

// Weakness: who controls an account at some provider gets whatever account here has the
// address that it names. Checked: without the word of a provider that speaks for the address,
// for a second account of one person, and where the address is another than before, a mail
// proves it first, in the browser that came from there.
func TestProviderIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	c.run()
	maya := ok[Account](t)(c.Accounts.Ensure(t.Context(), "maya@club.example"))
	bobs := ok[Account](t)(c.Accounts.Ensure(t.Context(), bob))
	unverified := claimsOf("1", "maya@club.example", "email_verified", false)
	for what, claims := range map[string]map[string]any{
		"unverified":          unverified,
		"not said":            claimsOf("1", "maya@club.example", "email_verified", nil),
		"another domain":      claimsOf("1", bob),
		"a domain below":      claimsOf("1", "maya@a.club.example"),
		"no address":          claimsOf("1", "maya"),
		"two addresses":       claimsOf("1", "bob@elsewhere.example, maya@club.example"),
		"with a display name": claimsOf("1", "Maya <maya@club.example>"),
	} {
		if in, prove, err := c.comes(claims); err != nil || prove == "" || in.Token != "" {
			t.Errorf("%s: %+v, %v", what, in, err)
		}
	}
	if n := c.rows("login/") + c.rows("session/"); n != 0 {
		t.Fatalf("%d rows", n)
	}
	// The link in another browser signs in there, and binds nothing.
	in, err := c.proves(unverified, maya.Email, 1, false)
	if err != nil || in.Account.ID != maya.ID || c.rows("login/") != 0 {
		t.Fatalf("%+v, %v", in, err)
	}
	if in, err = c.proves(unverified, maya.Email, 2, true); err != nil || in.Account.ID != maya.ID {
		t.Fatalf("%+v, %v", in, err)
	}
	if in := c.in(unverified); in.Account.ID != maya.ID { // by sub alone, from now on
		t.Errorf("%+v", in)
	}
	// Nobody else's mail takes it over, whatever the provider says of the address now.
	if _, err := c.proves(claimsOf("1", bob), bob, 1, true); !IsRefusal(err, controlapi.CodeInvalid) {
		t.Errorf("bob took maya's login: %v", err)
	}
	// A changed address, and a second sub, are refused until proven.
	changed, second := claimsOf("1", "m@club.example"), claimsOf("2", "maya@club.example")
	for _, claims := range []map[string]any{changed, second} {
		if in, prove, err := c.comes(claims); err != nil || prove == "" || in.Token != "" {
			t.Errorf("%v: %+v, %v", claims, in, err)
		}
	}
	for nth, claims := range []map[string]any{changed, second} {
		if in, err = c.proves(claims, maya.Email, 3+nth, true); err != nil || in.Account.ID != maya.ID {
			t.Fatalf("%v: %+v, %v", claims, in, err)
		}
		if in := c.in(claims); in.Account.ID != maya.ID {
			t.Errorf("%v: %+v", claims, in)
		}
	}
	if n := len(ok[[]Login](t)(c.Providers.Of(t.Context(), maya.ID))); n != 2 {
		t.Errorf("maya has %d logins", n)
	}
	if n := len(ok[[]Login](t)(c.Providers.Of(t.Context(), bobs.ID))); n != 0 {
		t.Errorf("bob has %d", n)
	}
	_, prove, _ := c.comes(claimsOf("3", "x@y.example"))
	for what, kept := range map[string]string{"none": "", "of a sign-in": func() string { _, k := c.begins(); return k }()} {
		if _, err := c.Providers.Prove(t.Context(), "club", kept, bob, Browser{Client: home}); !IsRefusal(err, controlapi.CodeForbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = c.Providers.LookAtProve("other", prove)
	wantRefusal(t, err, controlapi.CodeForbidden)
	c.clock.Add(ProviderLife)
	_, err = c.Providers.LookAtProve("club", prove)
	wantRefusal(t, err, controlapi.CodeForbidden)
}

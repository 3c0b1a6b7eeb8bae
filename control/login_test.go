package control

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/mail"
	"porchlight/control/provider"
	"porchlight/test/issuer"
	"porchlight/test/programs"
)

// club is a bench at which people sign in with a provider, which speaks for club.example,
// or with another one, which speaks for nobody.
type club struct {
	*bench
	i, other *issuer.Issuer
}

func newClub(t *testing.T, change ...func(*Config)) *club {
	t.Helper()
	c := &club{i: issuer.Start(), other: issuer.Start()}
	t.Cleanup(c.i.Close)
	t.Cleanup(c.other.Close)
	c.bench = newBench(t, append([]func(*Config){func(cfg *Config) {
		cfg.Providers = []*provider.Provider{
			provider.New(c.i.Config("club", "Porch Club", "club.example"), cfg.Now, nil),
			provider.New(c.other.Config("other", "Other"), cfg.Now, nil),
		}
	}}, change...)...)
	c.i.Now, c.other.Now = c.clock.Now, c.clock.Now
	return c
}

// claimsOf is what the provider says of somebody.
func claimsOf(sub, email string, more ...any) map[string]any {
	out := map[string]any{"sub": sub, "email": email, "email_verified": true}
	for i := 0; i < len(more); i += 2 {
		if out[more[i].(string)] = more[i+1]; more[i+1] == nil {
			delete(out, more[i].(string))
		}
	}
	return out
}

func (c *club) begins() (address, kept string) {
	c.t.Helper()
	address, kept, err := c.Providers.Begin(c.t.Context(), "club", "/account", false)
	programs.Must(c.t, err)
	return address, kept
}

func (c *club) back(kept, to string) (SignedIn, string, error) {
	c.t.Helper()
	u := programs.Got(url.Parse(to))(c.t)
	name := strings.TrimSuffix(strings.TrimPrefix(u.Path, PathProvider), PathProviderBack)
	return c.Providers.Finish(c.t.Context(), ProviderUse{Name: name, Kept: kept, Query: u.Query(), Asker: Asker{Client: home}})
}

// comes is a whole sign-in of somebody.
func (c *club) comes(claims map[string]any) (SignedIn, string, error) {
	c.t.Helper()
	address, kept := c.begins()
	return c.back(kept, c.i.SignIn(address, claims))
}

func (c *club) in(claims map[string]any) SignedIn {
	c.t.Helper()
	in, prove, err := c.comes(claims)
	if err != nil || prove != "" {
		c.t.Fatalf("%v: %v, to prove: %t", claims, err, prove != "")
	}
	return in
}

// proves is who came from the provider and has a mail prove who they are, in that browser,
// or by the link in another one.
func (c *club) proves(claims map[string]any, email string, nth int, here bool) (SignedIn, error) {
	c.t.Helper()
	in, prove, err := c.comes(claims)
	if err != nil || prove == "" || in.Token != "" {
		c.t.Fatalf("%v: %v, to prove: %t", claims, err, prove != "")
	}
	browser := programs.Got(c.Providers.Prove(c.t.Context(), "club", prove, email, Browser{Client: network(nth)}))(c.t)
	link, _ := c.mailed(email, nth)
	c.clock.Add(time.Millisecond)
	if !here {
		browser = ""
	}
	seen := ok[SignInLink](c.t)(c.SignIn.LookAtLink(c.t.Context(), link, browser))
	if (seen.Label == "Porch Club") != here {
		c.t.Errorf("the link's page says %+v", seen)
	}
	return c.SignIn.WithLink(c.t.Context(), link, browser, home)
}

// Who signs in with a provider that speaks for their address is in without a mail, as the
// account of it. From then on (iss, sub) says who they are, and each sign-in what the provider
// knows now.
func TestProviderSignsIn(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	maya := ok[Account](t)(c.Accounts.Ensure(t.Context(), "maya@club.example"))
	at := c.clock.Now().Add(-time.Minute)
	in := c.in(claimsOf("1", "Maya@club.example", "auth_time", at.Unix()))
	session := ok[Session](t)(c.Sessions.Of(t.Context(), in.Token))
	if in.Account.ID != maya.ID || in.ReturnTo != "/account" || in.Stale || session.Proof != controlapi.ProofProvider || !session.Proven.Equal(at) || session.Limited {
		t.Errorf("%+v is in by %+v", in, session)
	}
	for what, more := range map[string][]any{
		"that tells no time":   nil,
		"asked long ago":       {"auth_time", at.Add(-FreshFor).Unix()},
		"calls it unverified":  {"email_verified", false},
		"writes true as text":  {"email_verified", "true"},
		"tells no address now": {"email", nil},
	} {
		again := c.in(claimsOf("1", "maya@club.example", more...))
		if again.Account.ID != maya.ID || !again.Stale {
			t.Errorf("a provider %s: %+v", what, again)
		}
	}
	has := ok[[]Login](t)(c.Providers.Of(t.Context(), maya.ID))
	if len(has) != 1 || has[0].Label != "Porch Club" || has[0].Email != "maya@club.example" || has[0].LastUsedAt.IsZero() {
		t.Fatalf("maya has %+v", has)
	}
	if n := len(c.mails()); n != 1 || c.subjects("Porch Club signs you in now") != 1 {
		t.Errorf("%d mails", n)
	}
	bobs := ok[Account](t)(c.Accounts.Ensure(t.Context(), "bob@club.example"))
	programs.Must(t, c.Providers.Remove(t.Context(), bobs.ID, has[0].ID, "")) // not his: left alone
	if len(ok[[]Login](t)(c.Providers.Of(t.Context(), maya.ID))) != 1 {
		t.Error("bob removed maya's")
	}
	programs.Must(t, c.Providers.Remove(t.Context(), maya.ID, has[0].ID, ""))
	if len(ok[[]Login](t)(c.Providers.Of(t.Context(), maya.ID))) != 0 {
		t.Error("it is still there")
	}
	c.in(claimsOf("2", "bob@club.example"))
	programs.Must(t, c.Accounts.Remove(t.Context(), "bob@club.example"))
	if n := c.rows("login/") + c.rows("account-login/"); n != 0 {
		t.Errorf("%d rows of logins are left", n)
	}
	_, _, err := c.comes(claimsOf("2", "bob@club.example"))
	wantRefusal(t, err, controlapi.CodeForbidden) // nobody invited him, and nobody may just come
	if c.rows("signin") != 0 {
		t.Error("a sign-in that was only begun left a row")
	}
}

// Who turned mail off is not signed in by a provider's word for their address either.
func TestProviderIsNoWayAroundMailOff(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	maya := ok[Account](t)(c.Accounts.Ensure(t.Context(), "maya@club.example"))
	maya.MailOff = true
	c.keep(keyAccount(maya.ID), maya)
	_, _, err := c.comes(claimsOf("1", maya.Email))
	wantRefusal(t, err, controlapi.CodeForbidden)
	if n := c.rows("login/") + c.rows("session/"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// Weakness: whoever reads a mailbox binds a login of theirs, which goes on signing in when its
// owner has turned mail off, or has a passkey. Checked: where the account has a passkey nothing
// but that binds one, not the provider's word and not a mailed link; the account is told by
// mail, and the owner's computer, where "that was not me" ends it.
func TestPasskeyBindsLogins(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	c.run()
	e := c.owner()
	maya := Account{ID: e.AccountID, Email: e.Email}
	p, claims := c.passkey(maya), claimsOf("1", maya.Email)
	if in, err := c.proves(claims, maya.Email, 1, false); err != nil || in.ReturnTo == PathBind("club") {
		t.Errorf("in another browser: %+v, %v", in, err)
	}
	_, prove, err := c.comes(claims)
	programs.Must(t, err)
	browser := programs.Got(c.Providers.Prove(t.Context(), "club", prove, maya.Email, Browser{Client: network(2)}))(t)
	link, _ := c.mailed(maya.Email, 2)
	if seen := ok[SignInLink](t)(c.SignIn.LookAtLink(t.Context(), link, browser)); seen.Label != "" {
		t.Errorf("the link's page says %+v", seen)
	}
	mailed := ok[SignedIn](t)(c.SignIn.WithLink(t.Context(), link, browser, home))
	if mailed.ReturnTo != PathBind("club") || c.rows("login/") != 0 {
		t.Errorf("it leads to %s, and there are %d logins", mailed.ReturnTo, c.rows("login/"))
	}
	binds := func(by Session, kept string) error {
		_, err := c.Providers.Bind(t.Context(), by, "club", kept, Asker{Client: home})
		return err
	}
	wantRefusal(t, binds(ok[Session](t)(c.Sessions.Of(t.Context(), mailed.Token)), prove), controlapi.CodeUnauthorized)
	wantRefusal(t, binds(c.strongly(p), ""), controlapi.CodeForbidden)
	strong, ended := c.strongly(p), c.strongly(p)
	programs.Must(t, c.Sessions.End(t.Context(), maya.ID, ended.ID))
	wantRefusal(t, binds(ended, prove), controlapi.CodeUnauthorized)
	c.clock.Add(FreshFor)
	wantRefusal(t, binds(strong, prove), controlapi.CodeUnauthorized)
	programs.Must(t, binds(c.strongly(p), prove))
	in := c.in(claims)
	told := ok[controlapi.Snapshot](t)(c.Agents.Snapshot(t.Context(), e.Computer.ID)).Passkeys
	if in.Account.ID != maya.ID || c.subjects("Porch Club signs you in now") != 1 || len(told) != 2 || told[1].Name != "Porch Club" || !told[1].Provider || told[1].Client != "192.0.2.7" {
		t.Fatalf("%+v, told %+v", in, told)
	}
	programs.Must(t, c.Passkeys.EndForComputer(t.Context(), e.Computer.ID, controlapi.EndPasskey{ID: told[1].ID}))
	if _, err := c.Sessions.Of(t.Context(), in.Token); err == nil || c.rows("login/") != 0 {
		t.Errorf("%v, and %d logins", err, c.rows("login/"))
	}
	// Where the provider speaks for the address, its word does not do either; nor with mail off.
	carla := ok[Account](t)(c.Accounts.Ensure(t.Context(), "carla@club.example"))
	_, _ = c.mailOff(carla)
	if in, prove, err := c.comes(claimsOf("2", carla.Email)); err != nil || prove == "" || in.Token != "" {
		t.Errorf("%+v, %v", in, err)
	}
	// An address that is too long to be kept is told before the way, and not lost on it.
	_, _, err = c.Providers.Begin(t.Context(), "club", "/"+strings.Repeat("x", maxKeptReturn), false)
	wantRefusal(t, err, controlapi.CodeForbidden)
}

// Where anybody may have an account, a provider's word makes one, for its domains alone.
func TestProviderMakesAccounts(t *testing.T) {
	t.Parallel()
	c := newClub(t, func(cfg *Config) { cfg.OpenSignUp = true })
	if in := c.in(claimsOf("1", "erin@club.example")); in.Account.Email != "erin@club.example" || in.Account.MayEnrol {
		t.Errorf("%+v", in)
	}
	if _, prove, err := c.comes(claimsOf("2", "erin@elsewhere.example")); err != nil || prove == "" {
		t.Errorf("%v, to prove: %t", err, prove != "")
	}
}

// A provider's groups are those of the claim that its operator names, of the token or of what it
// says when asked, a list or one; none is an answer; and they go with the login. A computer
// hears of those alone that its owner lets.
func TestProviderTellsGroups(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	c.cfg.Providers[0].Groups = "teams"
	e := c.owner()
	reported := controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes", Live: true}}, Fills: []string{"club/a", "club/b c", "other/a"}}
	programs.Must(t, c.Agents.PutApps(t.Context(), e.Computer.ID, reported))
	maya := c.joined(e.Computer.ID, "maya@club.example", "app1")
	hears := func(what string, want ...string) {
		t.Helper()
		s := ok[controlapi.Snapshot](t)(c.Agents.Snapshot(t.Context(), e.Computer.ID))
		i := slices.IndexFunc(s.People, func(p controlapi.Person) bool { return p.AccountID == maya.ID })
		if !slices.Equal(s.People[i].Filled, want) || s.Reported != reported.Digest() {
			t.Errorf("%s: %v, want %v", what, s.People[i].Filled, want)
		}
	}
	watch := c.watch(e.Computer.ID)
	defer watch.unwatch()
	for what, one := range map[string]struct {
		claims []any
		want   []string
	}{
		"a list":          {[]any{"teams", []string{"z", "b c", "a", "a"}}, []string{"club/a", "club/b c"}},
		"one":             {[]any{"teams", "a"}, []string{"club/a"}},
		"none":            {[]any{"teams", []string{}}, nil},
		"nothing":         {nil, nil},
		"another claim":   {[]any{"groups", []string{"a"}}, nil},
		"numbers":         {[]any{"teams", []int{1}}, nil},
		"one of numbers":  {[]any{"teams", []any{"a", 1}}, nil},
		"a name too long": {[]any{"teams", []string{"a", strings.Repeat("x", 101)}}, []string{"club/a"}},
	} {
		c.in(claimsOf("1", maya.Email, one.claims...))
		hears(what, one.want...)
	}
	if !watch.woken() {
		t.Error("the computer is not told")
	}
	c.i.Change("userinfo", func(info map[string]any) { info["teams"] = []string{"b c"} })
	c.in(claimsOf("1", maya.Email))
	hears("when asked", "club/b c")
	bobs := ok[Account](t)(c.Accounts.Ensure(t.Context(), "bob@club.example"))
	c.in(claimsOf("2", bobs.Email, "teams", "a"))
	c.until("the mail about the login", func() bool {
		return slices.ContainsFunc(c.mails(), func(m mail.Entry) bool { return m.To == bobs.Email })
	})
	c.clock.Add(time.Millisecond) // so that mails have an order
	carla := maya
	maya = c.joined(e.Computer.ID, bobs.Email, "app1") // invited after he came
	hears("invited later", "club/a")
	maya = carla
	programs.Must(t, c.Providers.Remove(t.Context(), maya.ID, ok[[]Login](t)(c.Providers.Of(t.Context(), maya.ID))[0].ID, ""))
	hears("without the login")
	c.in(claimsOf("1", maya.Email, "teams", "a"))
	hears("with it again", "club/a")
	reported.Fills = nil
	programs.Must(t, c.Agents.PutApps(t.Context(), e.Computer.ID, reported))
	hears("not let")
	wantRefusal(t, c.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Fills: make([]string, maxFills+1)}), controlapi.CodeInvalid)
}

// An account has twenty logins at most, and a network so many tries.
func TestLoginsAreBounded(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	maya := ok[Account](t)(c.Accounts.Ensure(t.Context(), "maya@club.example"))
	for n := range maxLogins {
		c.bound(maya, login{Provider: "gone", Issuer: "https://gone.example", Subject: string(rune('a' + n))})
	}
	_, _, err := c.comes(claimsOf("1", maya.Email))
	wantRefusal(t, err, controlapi.CodeInvalid)
	if has := ok[[]Login](t)(c.Providers.Of(t.Context(), maya.ID)); len(has) != maxLogins || has[0].Label != "https://gone.example" {
		t.Errorf("%d, of %s", len(has), has[0].Label)
	}
	for range 60 {
		_, _, err = c.comes(claimsOf("1", maya.Email))
	}
	wantRefusal(t, err, controlapi.CodeTooMany)
}

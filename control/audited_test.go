package control

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/test/authenticator"
	"porchlight/test/programs"
)

// auditing has a bench keep what happens.
func auditing(log **audit.Log) func(*Config) {
	return func(c *Config) {
		*log = audit.New(audit.Config{Store: c.Store, Now: c.Now})
		c.Audit = *log
	}
}

// audited are the kinds of what was kept of an account; no row holds an address or one of
// these secrets.
func (b *bench) audited(log *audit.Log, accountID string, secrets ...string) (kinds []string) {
	b.t.Helper()
	programs.Must(b.t, log.Flush(b.t.Context()))
	programs.Must(b.t, audit.List(b.t.Context(), b.store, func(r audit.Row) error {
		for _, secret := range append(secrets, "@", home.String()) {
			if strings.Contains(r.On+" "+r.What+" "+r.By, secret) {
				b.t.Errorf("a row holds an address or a secret: %+v", r)
			}
		}
		if r.On == accountID {
			kinds = append(kinds, r.Kind)
		}
		return nil
	}))
	return kinds
}

// What happens to the security of accounts is kept, by their ids, with no address and no secret;
// what is refused is not.
func TestAudited(t *testing.T) {
	t.Parallel()
	var log *audit.Log
	b := newBench(t, auditing(&log))
	b.run()
	s := b.someApps()
	tokens := s.granted(s.bob, "maya")
	browser, link, _ := b.begin("bob@example.com", 1)
	_, err := b.SignIn.WithCode(t.Context(), browser, "000 000", home)
	wantRefusal(t, err, controlapi.CodeForbidden)
	signed := ok[SignedIn](t)(b.SignIn.WithLink(t.Context(), link, "", home))
	session := ok[Session](t)(b.Sessions.Of(t.Context(), signed.Token))
	made := ok[MadePassword](t)(b.Passwords.Make(t.Context(), session, NewPassword{Computer: "maya", AppID: "n1", Name: "git", Form: anID()}))
	programs.Must(t, b.Passwords.Revoke(t.Context(), s.bob.ID, "maya", made.ID))
	programs.Must(t, b.Grants.Revoke(t.Context(), s.Credentials, tokens.Refresh))
	ok[Suspension](t)(b.Suspensions.Suspend(t.Context(), SuspendAccount, s.bob.ID, "Complaint 2211", ByCommandLine))
	ok[Suspension](t)(b.Suspensions.Resume(t.Context(), SuspendAccount, s.bob.ID, "a mistake", ByCommandLine))
	byProvider := login{Issuer: "https://id.example", Subject: "bob"}
	b.bound(s.bob, byProvider)
	s.bob.MailOff = true
	b.keep(keyAccount(s.bob.ID), s.bob)
	programs.Must(t, b.Providers.Remove(t.Context(), s.bob.ID, byProvider.hash(), ""))
	b.clock.Add(time.Millisecond) // so that mails have an order
	ok[time.Time](t)(b.Recovery.Begin(t.Context(), "bob@example.com"))
	stop := programs.Got(url.Parse(b.newest("bob@example.com").Links[0]))(t)
	programs.Must(t, b.Recovery.Stop(t.Context(), stop.Query().Get("token")))
	ok[Operator](t)(b.Operators.Add(t.Context(), "bob@example.com"))
	ok[Operator](t)(b.Operators.Remove(t.Context(), "bob@example.com"))
	_, err = b.Operators.Remove(t.Context(), "bob@example.com")
	wantRefusal(t, err, controlapi.CodeNotFound)
	programs.Must(t, b.Accounts.Remove(t.Context(), "bob@example.com"))
	kinds := b.audited(log, s.bob.ID, made.Password)
	want := []string{"account-made", "sign-in", "grant-given", "sign-in-failed", "sign-in", "password-made", "password-ended", "grant-ended",
		"suspended", "resumed", "login-bound", "login-removed", "recovery-begun", "recovery-stopped", "operator-added", "operator-removed", "account-removed"}
	if !slices.Equal(kinds, want) {
		t.Errorf("kept are\n%q, want\n%q", kinds, want)
	}
	if report := ok[audit.Report](t)(audit.Verify(t.Context(), b.store, nil)); len(report.Problems) > 0 {
		t.Errorf("%q", report.Problems)
	}
}

// So are an export, what becomes of passkeys, recovery codes and logins, and who was refused
// with one of them; what strangers can try without end is kept a few times, and of nobody's
// account nothing is.
func TestAuditedWaysIn(t *testing.T) {
	t.Parallel()
	var log *audit.Log
	c := newClub(t, auditing(&log))
	maya := ok[Account](t)(c.Accounts.Ensure(t.Context(), "maya@club.example"))
	bobs := ok[Account](t)(c.Accounts.Ensure(t.Context(), "bob@club.example"))
	had := 0
	happens := func(kinds ...string) {
		t.Helper()
		all := c.audited(log, maya.ID)
		if got := all[had:]; !slices.Equal(got, kinds) {
			t.Errorf("kept are %q, want %q", got, kinds)
		}
		had = len(all)
	}
	happens("account-made")
	refused := func(_ SignedIn, err error) { t.Helper(); wantRefusal(t, err, controlapi.CodeForbidden) }

	// Logins.
	c.in(claimsOf("1", maya.Email))
	happens("login-bound", "sign-in")
	second := claimsOf("2", maya.Email)
	for _, claims := range []map[string]any{second, claimsOf("1", "m@club.example")} {
		_, prove, err := c.comes(claims)
		if err != nil || prove == "" {
			t.Fatalf("%v: %v", claims, err)
		}
		happens("sign-in-failed")
	}
	_, _, err := c.comes(claimsOf("3", maya.Email, "email_verified", false)) // says who wants to be her
	programs.Must(t, err)
	happens()
	logins := ok[[]Login](t)(c.Providers.Of(t.Context(), maya.ID))
	programs.Must(t, c.Providers.Remove(t.Context(), bobs.ID, logins[0].ID, "")) // not his
	happens()
	programs.Must(t, c.Providers.Remove(t.Context(), maya.ID, logins[0].ID, ""))
	happens("login-removed", "signed-out")

	// The end of sessions.
	token := c.session("", maya.ID)
	id := ok[Session](t)(c.Sessions.Of(t.Context(), token)).ID
	happens("sign-in")
	programs.Must(t, c.Sessions.End(t.Context(), maya.ID, "none"))
	programs.Must(t, c.Sessions.End(t.Context(), maya.ID, id))
	programs.Must(t, c.Sessions.SignOut(t.Context(), token)) // has ended
	happens("signed-out")
	programs.Must(t, c.Sessions.SignOut(t.Context(), c.session("", maya.ID)))
	programs.Must(t, c.Sessions.SignOutEverywhere(t.Context(), maya.ID))
	happens("sign-in", "signed-out", "signed-out")

	// Passkeys and codes.
	key, copied := authenticator.New(t, passkeyOrigin, "control.localhost"), authenticator.Passkey{}
	key.Count = 1
	programs.Must(t, c.adds(maya, key))
	copied = *key
	happens("sign-in", "sign-in", "passkey-added")
	session := c.strongly(key)
	ok[Export](t)(c.Accounts.Kept(t.Context(), session)) // is looked at on a page
	ok[Export](t)(c.Accounts.Export(t.Context(), session))
	happens("sign-in", "exported")
	codes := ok[[]string](t)(c.Recovery.MakeCodes(t.Context(), session, true, Asker{Client: home}))
	happens("recovery-codes-made", "mail-off")
	_, _, err = c.comes(claimsOf("1", maya.Email)) // a passkey has to bind it
	programs.Must(t, err)
	happens("sign-in-failed")
	refused(c.Recovery.WithCode(t.Context(), RecoveryUse{Email: maya.Email, Code: "aaaa-aaaa-aaaa-aaaa", Asker: Asker{Client: home}}))
	refused(c.Recovery.WithCode(t.Context(), RecoveryUse{Email: bobs.Email, Code: codes[0], Asker: Asker{Client: home}}))
	happens("sign-in-failed")
	refused(c.uses(&copied))
	happens("passkey-copied", "sign-in-failed")
	c.clock.Add(24 * time.Hour)
	wrong := *key
	wrong.RPID = "evil.example"
	unknown := wrong
	unknown.ID = []byte("nobody's")
	for range 3 * budgetNotes.limits[0].n {
		refused(c.uses(&wrong))
		refused(c.uses(&unknown))
	}
	happens(slices.Repeat([]string{"sign-in-failed"}, budgetNotes.limits[0].n)...)
	if kinds := c.audited(log, "", codes...); len(kinds) > 0 {
		t.Errorf("of nobody: %q", kinds)
	}
}

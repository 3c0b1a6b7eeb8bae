package control

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// What happens to the security of accounts is kept, by their ids, with no address and no secret;
// what is refused is not.
func TestAudited(t *testing.T) {
	t.Parallel()
	var log *audit.Log
	b := newBench(t, func(c *Config) {
		log = audit.New(audit.Config{Store: c.Store, Now: c.Now})
		c.Audit = log
	})
	b.run()
	s := b.someApps()
	tokens := s.granted(s.bob, "maya")
	browser, link, _ := b.begin("bob@example.com", 1)
	_, err := b.SignIn.WithCode(t.Context(), browser, "000 000", home)
	wantRefusal(t, err, controlapi.CodeForbidden)
	signed := ok[SignedIn](t)(b.SignIn.WithLink(t.Context(), link, "", home))
	session := ok[Session](t)(b.Sessions.Of(t.Context(), signed.Token))
	made := ok[MadePassword](t)(b.Passwords.Make(t.Context(), session, NewPassword{Computer: "maya", AppID: "n1", Name: "git", Form: newID()}))
	programs.Must(t, b.Passwords.Revoke(t.Context(), s.bob.ID, "maya", made.ID))
	programs.Must(t, b.Grants.Revoke(t.Context(), s.Credentials, tokens.Refresh))
	ok[Suspension](t)(b.Suspensions.Suspend(t.Context(), SuspendAccount, s.bob.ID, "Complaint 2211", ByCommandLine))
	ok[Suspension](t)(b.Suspensions.Resume(t.Context(), SuspendAccount, s.bob.ID, "a mistake", ByCommandLine))
	b.change(func(tx *txn) {
		programs.Must(t, tx.bind(s.bob, login{Issuer: "https://id.example", Subject: "bob"}))
		s.bob.MailOff = true
		tx.put(keyAccount(s.bob.ID), s.bob, 0)
	})
	programs.Must(t, b.Providers.Remove(t.Context(), s.bob.ID, login{Issuer: "https://id.example", Subject: "bob"}.hash()))
	b.clock.Add(time.Millisecond) // so that mails have an order
	ok[time.Time](t)(b.Recovery.Begin(t.Context(), "bob@example.com"))
	stop := programs.Got(url.Parse(b.newest("bob@example.com").Links[0]))(t)
	programs.Must(t, b.Recovery.Stop(t.Context(), stop.Query().Get("token")))
	ok[Operator](t)(b.Operators.Add(t.Context(), "bob@example.com"))
	ok[Operator](t)(b.Operators.Remove(t.Context(), "bob@example.com"))
	_, err = b.Operators.Remove(t.Context(), "bob@example.com")
	wantRefusal(t, err, controlapi.CodeNotFound)
	programs.Must(t, b.Accounts.Remove(t.Context(), "bob@example.com"))
	programs.Must(t, log.Flush(t.Context()))
	var kinds []string
	programs.Must(t, audit.List(t.Context(), b.store, func(r audit.Row) error {
		if strings.Contains(r.On+r.What+r.By, "@") || strings.Contains(r.What, made.Password) {
			t.Errorf("a row holds an address or a secret: %+v", r)
		}
		if r.On == s.bob.ID {
			kinds = append(kinds, r.Kind)
		}
		return nil
	}))
	want := []string{"account-made", "sign-in", "grant-given", "sign-in-failed", "sign-in", "password-made", "password-ended", "grant-ended",
		"suspended", "resumed", "login-bound", "login-removed", "recovery-begun", "recovery-stopped", "operator-added", "operator-removed", "account-removed"}
	if !slices.Equal(kinds, want) {
		t.Errorf("kept are\n%q, want\n%q", kinds, want)
	}
	if report := ok[audit.Report](t)(audit.Verify(t.Context(), b.store, nil)); len(report.Problems) > 0 {
		t.Errorf("%q", report.Problems)
	}
}

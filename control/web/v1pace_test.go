package web

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// TestV1IsBounded: a computer that asks without end is told 429 and when to come
// back; a sync that is held meanwhile has cost one request and goes on.
func TestV1IsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *control.Config) {
		cfg.Domain, cfg.AuthHost, cfg.PublicPort = "porch.example", "control.example", 443
	})
	c := r.client()
	first, err := c.Sync(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		s   controlapi.Snapshot
		err error
	}
	held := make(chan result, 1)
	go func() {
		s, err := c.Sync(t.Context(), first.Version)
		held <- result{s, err}
	}()
	var refusal *controlapi.Error
	for asked := 0; refusal == nil; asked++ {
		if asked > 100_000 {
			t.Fatal("a hundred thousand requests were answered")
		}
		if _, err := c.OAuthGrants(t.Context()); err != nil && !errors.As(err, &refusal) {
			t.Fatal(err)
		}
	}
	if refusal.Code != controlapi.CodeTooMany || refusal.HTTPStatus != http.StatusTooManyRequests || refusal.RetryAfter <= 0 {
		t.Errorf("refused with %+v", refusal)
	}
	r.member("bob@example.com", "app1")
	if got := <-held; got.err != nil || len(got.s.People) != 2 {
		t.Errorf("the held sync brought %+v, %v", got.s, got.err)
	}
}

// Weakness: whoever opens an app's address has its computer ask about a code, good
// or not. Attack: a stranger brings wrong codes until the computer is told 429.
// Checked: the computer still hears of its people, and its owner still removes one.
func TestVisitorsDoNotKeepAComputerFromSyncing(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *control.Config) {
		cfg.Domain, cfg.AuthHost, cfg.PublicPort = "porch.example", "control.example", 443
	})
	c := r.client()
	bob := r.member("bob@example.com", "app1")
	for asked := 0; ; asked++ {
		_, err := c.RedeemVisit(t.Context(), controlapi.Redeem{Code: "wrong", CodeVerifier: "wrong", RedirectURI: "https://notes.maya.porch.example/"})
		if control.IsRefusal(err, controlapi.CodeTooMany) {
			break
		}
		if !control.IsRefusal(err, controlapi.CodeInvalidGrant) || asked > 100_000 {
			t.Fatalf("wrong code %d: %v", asked, err)
		}
	}
	if _, err := c.Revoke(t.Context(), controlapi.Revoke{AccountID: bob.AccountID}); err != nil {
		t.Errorf("removing somebody: %v", err)
	}
	removed := func(p controlapi.Person) bool {
		return p.AccountID == bob.AccountID && p.Status == controlapi.PersonRevoked
	}
	if s, err := c.Sync(t.Context(), ""); err != nil || !slices.ContainsFunc(s.People, removed) {
		t.Errorf("the sync brought %+v, %v", s.People, err)
	}
}

package web

import (
	"errors"
	"net/http"
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

package proxy_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"porchlight/control/controlapi"
)

// Weakness: a visitor without an account can have this computer ask the control
// plane about codes, of which it may ask so many. Attack: a stranger brings wrong
// codes without end. Checked: after a while they are not asked about any more, and
// are again later; what the control plane itself could not answer counts for nothing.
func TestWrongCodesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bring := func() int {
		b := r.browser(false)
		res, _ := b.get(origin + "/")
		u, err := url.Parse(res.Header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		res, _ = b.get(origin + controlapi.CallbackPath + "?code=wrong&state=" + u.Query().Get("state"))
		return res.StatusCode
	}
	r.mu.Lock()
	r.redeemErr = &controlapi.Error{Code: controlapi.CodeUnavailable}
	r.mu.Unlock()
	for range 60 + 5 {
		if status := bring(); status != http.StatusServiceUnavailable {
			t.Fatalf("with the control plane away: %d", status)
		}
	}
	r.mu.Lock()
	r.redeemErr = nil
	r.clock += time.Hour
	r.mu.Unlock()

	before, refused := r.redeems.Load(), false
	for range 10 * 60 {
		if refused = bring() == http.StatusTooManyRequests; refused {
			break
		}
	}
	if asked := r.redeems.Load() - before; !refused || asked < 60 {
		t.Errorf("%d were asked about, refused: %v", asked, refused)
	}
	r.mu.Lock()
	r.clock += time.Hour
	r.mu.Unlock()
	if to := r.browser(false).signIn(origin+"/x", bobID); to != origin+"/x" {
		t.Errorf("an hour later signing in leads to %s", to)
	}
}

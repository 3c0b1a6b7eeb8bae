package proxy_test

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/proxy"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: a visitor without an account can have this computer ask the control
// plane about codes, of which it may ask so many. Attack: a stranger brings wrong
// codes without end. Checked: 60 are asked about at once and one more each second; what
// the control plane itself could not answer counts for nothing.
func TestWrongCodesAreBounded(t *testing.T) {
	t.Parallel()
	var clock stoodStill
	r := newRig(t, clock.is)
	bring := func() int {
		b := r.browser(false)
		res, _ := b.get(origin + "/")
		u := programs.Got(url.Parse(res.Header.Get("Location")))(t)
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
	r.mu.Unlock()
	clock.pass(time.Hour)

	for _, c := range []struct {
		pass time.Duration
		want int64
	}{{0, 60}, {time.Second, 1}, {3 * time.Second, 3}, {time.Hour, 60}} {
		clock.pass(c.pass)
		before := r.redeems.Load()
		for i := 0; i < 2*60 && bring() != http.StatusTooManyRequests; i++ {
		}
		if asked := r.redeems.Load() - before; asked != c.want {
			t.Errorf("after %v %d were asked about, want %d", c.pass, asked, c.want)
		}
	}
	clock.pass(time.Hour)
	if to := r.browser(false).signIn(origin+"/x", bobID); to != origin+"/x" {
		t.Errorf("an hour later signing in leads to %s", to)
	}
}

// stoodStill is a clock of the proxy that moves only when told to.
type stoodStill struct{ passed atomic.Int64 }

func (s *stoodStill) is(c *proxy.Config) {
	began := c.Now()
	c.Now = func() time.Time { return began.Add(time.Duration(s.passed.Load())) }
}

func (s *stoodStill) pass(d time.Duration) { s.passed.Add(int64(d)) }

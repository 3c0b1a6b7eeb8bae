package certs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3/acme"

	"porchlight/test/programs"
)

// suggesting is an authority that says when certificates are to be renewed.
type suggesting struct {
	*noting
	at    atomic.Pointer[time.Time] // nil for an error
	asked atomic.Int64
}

func (s *suggesting) GetRenewalInfo(_ context.Context, cert certmagic.Certificate) (info acme.RenewalInfo, err error) {
	s.asked.Add(1)
	at := s.at.Load()
	if at == nil || cert.Leaf == nil {
		return info, errors.New("it does not say")
	}
	info.SelectedTime = *at
	again := time.Now().Add(time.Second) // too soon to be heeded
	info.RetryAfter = &again
	return info, nil
}

// An authority has the certificate of all names renewed sooner than is planned, never later, and
// not without end: it is asked each minute at most, and each six hours where it does not say.
func TestAuthoritySaysWhenToRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const life, common = 90 * 24 * time.Hour, "maya.test *.maya.test"
		authority := &noting{inMemory: newInMemory(t, life)}
		r := &wildRig{authority: authority, suggests: &suggesting{noting: authority}, changed: make(chan struct{}), dir: t.TempDir()}
		r.live.Store("maya.test", true)
		r.offered.Store(true)
		stop := r.start(t)
		defer func() { stop() }()
		suggest := func(at time.Time) {
			t.Helper()
			r.suggests.at.Store(&at)
			stop()
			stop = r.start(t)
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		r.days(t, 2)
		r.wantAsked(t, "at the start", common)
		if asked := r.suggests.asked.Load(); asked < 8 || asked > 10 {
			t.Errorf("an authority that does not say is asked %d times in two days", asked)
		}
		begun := time.Now()
		before := r.suggests.asked.Load()
		suggest(begun.Add(24 * time.Hour))
		if s, _ := r.State("maya.test"); s.RenewsAfter.Sub(begun) != 24*time.Hour {
			t.Errorf("the owner is told that it is renewed after %v", s.RenewsAfter.Sub(begun))
		}
		time.Sleep(23 * time.Hour)
		r.wantAsked(t, "before the time that it suggests")
		if asked := r.suggests.asked.Load() - before; asked < 23*60-5 || asked > 23*60+5 {
			t.Errorf("in 23 hours it is asked %d times", asked)
		}
		time.Sleep(2 * time.Hour)
		r.wantAsked(t, "after it", common)

		// One that says "now" of each has one a day, and one that says "never" changes nothing.
		suggest(time.Now().Add(-time.Hour))
		r.days(t, 10)
		if asked := len(r.authority.since()); asked < 9 || asked > 11 {
			t.Errorf("in ten days it has %d ordered", asked)
		}
		leaf := programs.Got(r.served(t, "maya.test"))(t)
		suggest(leaf.NotAfter.Add(life))
		r.days(t, 58)
		r.wantAsked(t, "before two thirds of its life are over")
		r.days(t, 4)
		r.wantAsked(t, "after them", common)
	})
}

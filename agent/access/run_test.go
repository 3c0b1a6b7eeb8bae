package access_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/access"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

// Run reports changes of the number of connections at most twice a second, the
// last one always.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var changes broadcast.Signal
		a := newAccess(t, access.Config{Store: openStore(t, t.TempDir()), Changes: &changes})
		a.SetSnapshot(snapshot(nil))
		programs.Run(t, a.Run)
		var reports, last atomic.Int64
		changed, stop := changes.Subscribe()
		defer stop()
		go func() {
			for {
				select {
				case <-changed:
					reports.Add(1)
					last.Store(int64(a.Connections()[notes]))
				case <-t.Context().Done():
					return
				}
			}
		}()
		id := access.Identity{AccountID: bob, Epoch: 1}
		for range 100 {
			_, leave := a.Enter(id, notes, func() {})
			leave()
			time.Sleep(10 * time.Millisecond)
		}
		_, leave := a.Enter(id, notes, func() {})
		defer leave()
		time.Sleep(time.Second)
		if n := reports.Load(); n < 2 || n > 5 {
			t.Errorf("%d reports in two seconds", n)
		}
		if last.Load() != 1 {
			t.Errorf("the last report counted %d", last.Load())
		}
	})
}

// AwaitAllowed wakes with the snapshot that allows, and gives up with its
// context.
func TestAwaitAllowed(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	id := access.Identity{AccountID: bob, Epoch: 2}
	a.SetSnapshot(snapshot(nil))
	got := make(chan access.Decision)
	go func() { got <- a.AwaitAllowed(t.Context(), id, notes) }()
	a.SetSnapshot(snapshot(func(p []controlapi.Person) { p[0].Email = "m@example.com" }))
	a.SetSnapshot(snapshot(func(p []controlapi.Person) { p[1].Epoch = 2 }))
	if d := <-got; !d.Allowed {
		t.Errorf("%+v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d := a.AwaitAllowed(ctx, access.Identity{AccountID: "acc-eve"}, notes); d.Allowed {
		t.Errorf("%+v", d)
	}
}

// The owner's links work once, for one app, for a minute, and are bounded.
func TestLinks(t *testing.T) {
	t.Parallel()
	c := newClock()
	a, _ := open(t, t.TempDir(), c)
	if _, _, err := a.MintLink(notes); !errors.Is(err, access.ErrNoOwner) {
		t.Errorf("without an owner: %v", err)
	}
	a.SetSnapshot(snapshot(nil))
	mint := func() string {
		token, expires, err := a.MintLink(notes)
		if err != nil || !expires.Equal(c.now().Add(60*time.Second)) {
			t.Fatalf("%v %v", expires, err)
		}
		return token
	}
	token := mint()
	other := "A" + token[1:]
	if other == token {
		other = "B" + token[1:]
	}
	for _, bad := range []string{"", "x", token[:42], token + "A", other} {
		if _, err := a.RedeemLink(bad, notes); !errors.Is(err, access.ErrLink) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := a.RedeemLink(token, "id-photos"); !errors.Is(err, access.ErrLink) {
		t.Errorf("at another app: %v", err)
	}
	if p, err := a.RedeemLink(token, notes); err != nil || p.AccountID != owner {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := a.RedeemLink(token, notes); !errors.Is(err, access.ErrLink) {
		t.Errorf("twice: %v", err)
	}
	token = mint()
	c.advance(60*time.Second + 1)
	if _, err := a.RedeemLink(token, notes); !errors.Is(err, access.ErrLink) {
		t.Errorf("too late: %v", err)
	}
	first := mint()
	for range 64 {
		c.advance(time.Millisecond)
		token = mint()
	}
	if _, err := a.RedeemLink(first, notes); !errors.Is(err, access.ErrLink) {
		t.Errorf("the oldest of 65: %v", err)
	}
	if _, err := a.RedeemLink(token, notes); err != nil {
		t.Errorf("the newest of 65: %v", err)
	}
}

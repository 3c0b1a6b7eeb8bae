package web

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
)

// Of 64 browsers that use one sign-in link, one code to type, or one invitation
// at the same time, one is signed in, whatever the store.
func TestOneBrowserWins(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, r *rig) {
		winners := func(what string, browsers func() *browser, path string, fields ...string) {
			t.Helper()
			all := make(chan *browser, 64)
			for range cap(all) {
				all <- browsers()
			}
			won := race(cap(all), func() bool {
				b := <-all
				a := b.post(path, fields...)
				signedIn := a.StatusCode == http.StatusSeeOther && strings.Contains(strings.Join(a.Header["Set-Cookie"], "; "), "__Host-porchlight-"+r.svc.Keys.Instance()+"=")
				if !signedIn && a.StatusCode >= 500 {
					t.Errorf("%s: %d %s", what, a.StatusCode, a.body)
				}
				return signedIn
			})
			if won != 1 {
				t.Errorf("%s: %d of 64 are signed in", what, won)
			}
		}
		asking := r.browser()
		asking.post("/signin", "email", "maya@example.com").want(t, http.StatusSeeOther)
		winners("link", r.browser, "/signin/link", "token", tokenOf(t, r.mails("maya@example.com", 1)))

		asking.post("/signin", "email", "maya@example.com").want(t, http.StatusSeeOther)
		code := codeLine.FindStringSubmatch(r.mails("maya@example.com", 2).Text)[1]
		jar := asking.http.Jar
		winners("code", func() *browser { b := r.browser(); b.http.Jar = jar; return b }, "/signin/code", "code", code)

		must(r.svc.People.Invite(t.Context(), r.owner.Computer.ID, "ben@example.com", []string{"app1"}))
		winners("invitation", r.browser, "/invitation", "token", tokenOf(t, r.invitations("ben@example.com", 1)))
	})
}

// What is over is deleted, not only hidden, whatever the store.
func TestExpiredRowsAreSwept(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	bolt, err := kv.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"), kv.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bolt.Close() })
	postgres, err := kv.Open(t.Context(), pgtest.Database(t), kv.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { postgres.Close() })
	rigs := map[string]*rig{}
	stores := map[string]kv.Store{"bolt": bolt, "postgres": postgres}
	count := func(store kv.Store, prefixes ...string) int {
		n := 0
		err := store.Dump(context.WithoutCancel(t.Context()), func(r kv.Record) error {
			for _, p := range prefixes {
				if strings.HasPrefix(r.Key, p) {
					n++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	short := []string{"signin", "authorization/", "session/", "invitation/", "grant/", "account-grant/"}
	for name, store := range stores {
		r := newRigOn(t, store, func(c *control.Config) { c.Now = now })
		rigs[name] = r
		c := r.remote(0)
		b, tokens := c.granted()
		c.allow(b, c.authorizePath()) // a code that is never used
		r.browser().post("/signin", "email", "maya@example.com").want(t, http.StatusSeeOther)
		r.mails("maya@example.com", 2) // a link that is never used
		must(r.svc.People.Invite(t.Context(), r.owner.Computer.ID, "ben@example.com", []string{"app1"}))
		c.refresh(tokens.RefreshToken).want(t, http.StatusOK)
		if n := count(store, short...); n < len(short) {
			t.Fatalf("%s: only %d rows to sweep", name, n)
		}
	}
	ahead.Store(int64((90 + 3) * 24 * time.Hour))
	for name, store := range stores {
		kept := count(store, "account/", "computer/", "client/", "keys")
		for {
			n, err := store.Sweep(t.Context(), 5)
			if err != nil {
				t.Fatal(err)
			}
			if n < 5 {
				break
			}
		}
		if n := count(store, short...); n != 0 {
			t.Errorf("%s: %d rows are left that nobody can read", name, n)
		}
		if n := count(store, "account/", "computer/", "client/", "keys"); n != kept || n == 0 {
			t.Errorf("%s: of %d rows that stay, %d are left", name, kept, n)
		}
		if _, err := rigs[name].svc.Clients.List(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

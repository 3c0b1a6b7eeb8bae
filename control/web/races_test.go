package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// onStores runs a test on a control plane above each store.
func onStores(t *testing.T, test func(*testing.T, *rig)) {
	t.Helper()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

var here = netip.MustParseAddr("192.0.2.1")

// session is one that an account has just begun, of no browser.
func (r *rig) session(account control.Account) control.Session {
	r.t.Helper()
	now := time.Now().UTC()
	must(0, r.store.Update(r.t.Context(), func(tx kv.Tx) error {
		row := map[string]any{"id": account.ID, "accountId": account.ID, "createdAt": now, "lastUsedAt": now}
		return errors.Join(kv.PutJSON(tx, "session/"+account.ID, row, time.Hour), kv.PutJSON(tx, "account-session/"+account.ID+"/"+account.ID, struct{}{}, time.Hour))
	}))
	return control.Session{ID: account.ID, Account: account, Proven: now}
}

// enrollers are accounts that may connect computers, each with an enrolment that
// waits and a fresh session.
func (r *rig) enrollers(n int) (sessions []control.Session, asked []controlapi.EnrolStarted) {
	r.t.Helper()
	for i := range n {
		account := must(r.svc.Accounts.Ensure(r.t.Context(), fmt.Sprintf("o%d@example.com", i)))
		sessions = append(sessions, r.session(account))
		// Each from a network of its own, whose budget is not what is tested.
		from := netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})
		asked = append(asked, must(r.svc.Enrolment.Begin(r.t.Context(), controlapi.EnrolRequest{Machine: "m", Platform: "linux"}, from)))
	}
	return sessions, asked
}

// Weakness: two people choose a name at the same moment, and both are told that
// it is theirs. Checked, on both stores: of sixteen accounts that confirm the
// same short name one gets it, and the others are told that it is taken.
func TestOneAccountGetsAName(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		sessions, asked := r.enrollers(16)
		next := make(chan int, len(asked))
		for i := range asked {
			next <- i
		}
		won := race(len(asked), func() bool {
			i := <-next
			got, err := r.svc.Enrolment.Confirm(t.Context(), sessions[i], asked[i].UserCode, "attic", false, here)
			switch {
			case err == nil:
				return got.Computer.Name == "attic" && !got.Replaces
			case !control.IsRefusal(err, controlapi.CodeInvalid) || !strings.Contains(err.Error(), "taken"):
				t.Errorf("account %d: %v", i, err)
			}
			return false
		})
		if won != 1 {
			t.Errorf("%d accounts have the name", won)
		}
		credentials := 0
		for _, a := range asked {
			if got, err := r.svc.Enrolment.Poll(t.Context(), a.DeviceCode); err == nil {
				credentials++
				if c := must(r.svc.Agents.Authenticate(t.Context(), got.Credential)); c.Name != "attic" {
					t.Errorf("a credential for %q", c.Name)
				}
			}
		}
		if credentials != 1 {
			t.Errorf("%d computers have a credential", credentials)
		}
	})
}

// Weakness: one code is confirmed twice, by two people or with two names, and the
// computer belongs to whoever came last. Checked: of sixteen confirmations of one
// code one counts, and nothing is left of the others' names.
func TestACodeIsConfirmedOnce(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		sessions, asked := r.enrollers(16)
		next := make(chan int, len(asked))
		for i := range asked {
			next <- i
		}
		var winner atomic.Int64
		won := race(len(asked), func() bool {
			i := <-next
			_, err := r.svc.Enrolment.Confirm(t.Context(), sessions[i], asked[0].UserCode, fmt.Sprintf("name%d", i), false, here)
			if err == nil {
				winner.Store(int64(i))
			} else if !control.IsRefusal(err, controlapi.CodeNotFound) {
				t.Errorf("account %d: %v", i, err)
			}
			return err == nil
		})
		if won != 1 {
			t.Fatalf("%d confirmations counted", won)
		}
		got := must(r.svc.Enrolment.Poll(t.Context(), asked[0].DeviceCode))
		if i := winner.Load(); got.AccountID != sessions[i].Account.ID || got.Computer.Name != fmt.Sprintf("name%d", i) {
			t.Errorf("confirmed by %d, and became %+v", i, got)
		}
		if all := must(r.svc.Computers.List(t.Context())); len(all) != 2 { // maya's, too
			t.Errorf("there are %d computers", len(all))
		}
	})
}

// Weakness: a refresh that is under way while access is taken away hands out a
// token that outlives it. Checked, on both stores and for everything that takes
// access away: refreshes go on all the time, in many hands; once taking away has
// answered, not one succeeds, and the computer is told of the grant.
func TestNoRefreshOutlivesAccess(t *testing.T) {
	t.Parallel()
	const clients = 8
	for what, end := range map[string]func(*rig, *remote, []string) error{
		"the grants are revoked": func(r *rig, c *remote, grants []string) error {
			for _, id := range grants {
				if err := r.svc.Grants.RevokeForComputer(r.t.Context(), r.owner.Computer.ID, controlapi.RevokeGrant{ID: id}); err != nil {
					return err
				}
			}
			return nil
		},
		"the client is removed": func(r *rig, c *remote, _ []string) error { return r.svc.Clients.Remove(r.t.Context(), c.client.ID) },
		"the account is removed": func(r *rig, _ *remote, _ []string) error {
			return r.svc.Accounts.Remove(r.t.Context(), "ben@example.com")
		},
		"the person is revoked": func(r *rig, _ *remote, _ []string) error {
			ben := must(r.svc.Accounts.ByEmail(r.t.Context(), "ben@example.com"))
			_, err := r.svc.People.Remove(r.t.Context(), r.owner.Computer.ID, controlapi.Remove{AccountID: ben.ID})
			return err
		},
		"the computer is removed": func(r *rig, _ *remote, _ []string) error {
			return r.svc.Computers.Remove(r.t.Context(), r.owner.AccountID, "maya")
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, r *rig) {
				r.member("ben@example.com", "app1")
				c := r.remote(0)
				b := r.signedIn("ben@example.com")
				refresh := func(token string) (control.Tokens, error) {
					return r.svc.Grants.Refresh(t.Context(), control.Credentials{ID: c.config.ClientID, Secret: c.config.ClientSecret}, token)
				}
				var grants, tokens []string
				for range clients {
					token := c.grant(b).RefreshToken
					id, _, _ := strings.Cut(token, ".")
					grants, tokens = append(grants, id), append(tokens, token)
				}
				var under sync.WaitGroup
				var over atomic.Bool
				enough := make(chan struct{}, clients)
				for _, token := range tokens {
					under.Go(func() {
						for n := 1; ; n++ {
							ended := over.Load() // before the refresh is asked for
							next, err := refresh(token)
							if err != nil {
								for range 3 { // and it stays so
									if _, err := refresh(token); !control.IsRefusal(err, controlapi.CodeAccessDenied) && !control.IsRefusal(err, controlapi.CodeInvalidClient) {
										t.Errorf("after %d refreshes: %v", n, err)
									}
								}
								if n <= 5 {
									enough <- struct{}{}
								}
								return
							}
							if ended {
								t.Error("refreshed after access was taken away")
								return
							}
							token = next.Refresh
							if n == 5 {
								enough <- struct{}{}
							}
						}
					})
				}
				for range clients {
					<-enough
				}
				if err := end(r, c, grants); err != nil {
					t.Error(err)
				}
				over.Store(true)
				under.Wait()
				r.nothingActive(grants)
			})
		})
	}
}

// nothingActive checks that of grants that were revoked only what says so is
// left.
func (r *rig) nothingActive(grants []string) {
	r.t.Helper()
	told := 0
	err := r.store.View(context.WithoutCancel(r.t.Context()), func(tx kv.Tx) error {
		told = 0
		for _, prefix := range []string{"account-grant/", "computer-grant/", "client-grant/"} {
			if items, err := tx.Scan(prefix, "", 10); err != nil || len(items) > 0 {
				r.t.Errorf("%d rows under %s are left (%v)", len(items), prefix, err)
			}
		}
		items, err := tx.Scan("revoked-grant/"+r.owner.Computer.ID+"/", "", 100)
		told = len(items)
		return err
	})
	if err != nil || told != len(grants) {
		r.t.Errorf("the computer is told of %d of %d grants (%v)", told, len(grants), err)
	}
}

// Weakness: an invitation accepted while it is taken back leaves somebody active
// whom the owner saw removed. Checked: whoever comes first, the person is revoked
// in the end, and an acceptance that lost says so.
func TestAcceptingWhileRevoking(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		for i := range 10 {
			email := fmt.Sprintf("p%d@example.com", i)
			p := must(r.svc.People.Invite(t.Context(), r.owner.Computer.ID, controlapi.Invite{Email: email, Apps: []string{"app1"}}))
			token := tokenOf(t, r.invitations(email, 1))
			var both sync.WaitGroup
			both.Go(func() {
				_, err := r.svc.People.AcceptInvitation(t.Context(), token, "", here)
				if err != nil && !control.IsRefusal(err, controlapi.CodeNotFound) {
					t.Error(err)
				}
			})
			both.Go(func() {
				if _, err := r.svc.People.Remove(t.Context(), r.owner.Computer.ID, controlapi.Remove{AccountID: p.AccountID}); err != nil {
					t.Error(err)
				}
			})
			both.Wait()
			for _, now := range must(r.svc.People.List(t.Context(), r.owner.Computer.ID)) {
				if now.Email == email && now.Status != controlapi.PersonRemoved {
					t.Errorf("%s is %s", email, now.Status)
				}
			}
			if _, err := r.svc.People.AcceptInvitation(t.Context(), token, "", here); !control.IsRefusal(err, controlapi.CodeNotFound) {
				t.Errorf("the link still works: %v", err)
			}
		}
	})
}

// Of 64 browsers that use one sign-in link, one code to type, or one invitation
// at the same time, one is signed in, whatever the store.
func TestOneBrowserWins(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
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

		must(r.svc.People.Invite(t.Context(), r.owner.Computer.ID, controlapi.Invite{Email: "ben@example.com", Apps: []string{"app1"}}))
		winners("invitation", r.browser, "/invitation", "token", tokenOf(t, r.invitations("ben@example.com", 1)))
	})
}

// What is over is deleted, not only hidden, whatever the store.
func TestExpiredRowsAreSwept(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	bolt := programs.Got(kv.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"), kv.Options{Now: now}))(t)
	t.Cleanup(func() { bolt.Close() })
	postgres := programs.Got(kv.Open(t.Context(), pgtest.Database(t), kv.Options{Now: now}))(t)
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
		programs.Must(t, err)
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
		must(r.svc.People.Invite(t.Context(), r.owner.Computer.ID, controlapi.Invite{Email: "ben@example.com", Apps: []string{"app1"}}))
		c.refresh(tokens.RefreshToken).want(t, http.StatusOK)
		if n := count(store, short...); n < len(short) {
			t.Fatalf("%s: only %d rows to sweep", name, n)
		}
	}
	ahead.Store(int64((90 + 3) * 24 * time.Hour))
	for name, store := range stores {
		kept := count(store, "account/", "computer/", "client/", "keys")
		for {
			n := programs.Got(store.Sweep(t.Context(), 5))(t)
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

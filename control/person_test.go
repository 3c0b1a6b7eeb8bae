package control

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// modelPerson is the table of docs/interface.md, States of a person, told as
// simply as it can be.
type modelPerson struct {
	exists bool
	status controlapi.PersonStatus
	apps   map[string]bool
	links  []modelLink // that were not used
	fresh  bool        // never there before, and not accepted

	until, ended map[string]time.Time
}

// pass is what time does to it.
func (p *modelPerson) pass(now time.Time) {
	for app, at := range p.until {
		if !now.Before(at) {
			p.ended[app] = at
			delete(p.until, app)
			delete(p.apps, app)
		}
	}
}

func (p *modelPerson) give(app string, u until) {
	p.apps[app] = true
	delete(p.ended, app)
	if !u.keep {
		delete(p.until, app)
		if !u.at.IsZero() {
			p.until[app] = u.at
		}
	}
}

func (p *modelPerson) take(app string) {
	delete(p.apps, app)
	delete(p.until, app)
	delete(p.ended, app)
}

func (p *modelPerson) anew() {
	p.apps, p.until, p.ended = map[string]bool{}, map[string]time.Time{}, map[string]time.Time{}
}

type modelLink struct {
	token string
	until time.Time
}

// Any sequence of events leaves the rows the simple model says, through the
// real store, and tells every change to the agent.
func TestPersonModel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		e := programs.Got(b.Computers.Ensure(b.t.Context(), fmt.Sprintf("owner%d@example.com", run), fmt.Sprintf("c%d", run)))(t)
		id, ctx := e.Computer.ID, b.t.Context()
		live := []string{"a", "b", "c"}
		report := func() {
			apps := []controlapi.App{}
			for _, a := range live {
				apps = append(apps, controlapi.App{ID: a, Name: a, Label: a, Live: true})
			}
			programs.Must(t, b.Agents.PutApps(ctx, id, controlapi.Apps{Apps: apps}))
		}
		report()
		emails := []string{fmt.Sprintf("p%d@example.com", run), fmt.Sprintf("q%d@example.com", run)}
		model := map[string]*modelPerson{}
		accounts := map[string]string{}
		var used modelLink
		for _, email := range emails {
			a := programs.Got(b.Accounts.Ensure(ctx, email))(t)
			accounts[email], model[email] = a.ID, &modelPerson{}
			model[email].anew()
		}
		version := func() string {
			s := programs.Got(b.Agents.Snapshot(ctx, id))(t)
			return s.Version
		}
		anApp := rapid.SampledFrom([]string{"a", "b", "c"})
		anEmail := rapid.SampledFrom(emails)
		anEnd := func(t *rapid.T) (string, until) {
			switch n := rapid.IntRange(0, 5).Draw(t, "until"); n {
			case 0:
				return controlapi.UntilNever, until{}
			case 1, 2, 3:
				at := b.clock.Now().Add(time.Duration(n*n*n) * time.Hour).UTC().Truncate(time.Second)
				return at.Format(time.RFC3339), until{at: at}
			}
			return "", until{keep: true}
		}
		expect := func(what string, err error, allowed bool) {
			if (err == nil) != allowed {
				t.Fatalf("%s: %v, allowed by the model: %t", what, err, allowed)
			}
		}

		t.Repeat(map[string]func(*rapid.T){
			"invite": func(t *rapid.T) {
				email := anEmail.Draw(t, "email")
				apps := rapid.SliceOfN(anApp, 1, 3).Draw(t, "apps")
				p := model[email]
				allowed := !slices.ContainsFunc(apps, func(a string) bool { return !slices.Contains(live, a) })
				end, u := anEnd(t)
				_, err := b.People.Invite(ctx, id, controlapi.Invite{Email: email, Apps: apps, Until: end})
				expect("invite", err, allowed)
				if !allowed {
					return
				}
				if !p.exists || p.status == controlapi.PersonRemoved {
					p.fresh = !p.exists
					p.exists, p.status = true, controlapi.PersonPending
					p.anew()
				}
				for _, a := range apps {
					p.give(a, u)
				}
				p.links = append(p.links, modelLink{b.invitation(email), b.clock.Now().Add(invitationLife)})
			},
			"accept": func(t *rapid.T) {
				p := model[anEmail.Draw(t, "email")]
				link := used
				if len(p.links) > 0 {
					link = rapid.SampledFrom(p.links).Draw(t, "link")
				}
				_, err := b.People.AcceptInvitation(ctx, link.token, "", home)
				over := len(p.apps) == 0 && len(p.ended) > 0 // with the last of what it is for
				expect("accept", err, b.clock.Now().Before(link.until) && !over)
				if err == nil {
					p.status, p.fresh, used = controlapi.PersonActive, false, modelLink{token: link.token}
					p.links = slices.DeleteFunc(p.links, func(l modelLink) bool { return l == link })
				}
			},
			"grant": func(t *rapid.T) {
				email, app := anEmail.Draw(t, "email"), anApp.Draw(t, "app")
				p := model[email]
				end, u := anEnd(t)
				_, err := b.People.SetAccess(ctx, id, controlapi.SetAccess{AccountID: accounts[email], App: app, Granted: true, Until: end})
				expect("grant", err, p.exists && slices.Contains(live, app))
				if err == nil {
					p.give(app, u)
				}
			},
			"withdraw": func(t *rapid.T) {
				email, app := anEmail.Draw(t, "email"), anApp.Draw(t, "app")
				p := model[email]
				_, err := b.People.SetAccess(ctx, id, controlapi.SetAccess{AccountID: accounts[email], App: app})
				expect("withdraw", err, p.exists)
				p.take(app)
			},
			"the ends are looked at": func(t *rapid.T) {
				programs.Got(b.People.endDue(ctx))(t)
			},
			"revoke": func(t *rapid.T) {
				email := anEmail.Draw(t, "email")
				p := model[email]
				_, err := b.People.Remove(ctx, id, controlapi.Remove{AccountID: accounts[email]})
				expect("revoke", err, p.exists)
				if p.exists {
					p.status, p.links, p.fresh = controlapi.PersonRemoved, nil, false
				}
			},
			"undo an invitation": func(t *rapid.T) {
				email := anEmail.Draw(t, "email")
				p := model[email]
				_, err := b.People.Remove(ctx, id, controlapi.Remove{AccountID: accounts[email], Undo: true})
				expect("undo", err, p.exists)
				if p.exists {
					p.exists, p.status, p.links, p.fresh = !p.fresh, controlapi.PersonRemoved, nil, false
				}
			},
			"leave": func(t *rapid.T) {
				email := anEmail.Draw(t, "email")
				p := model[email]
				allowed := p.exists && p.status != controlapi.PersonRemoved
				expect("leave", b.People.Leave(ctx, accounts[email], e.Computer.Name), allowed)
				if allowed {
					p.status, p.links, p.fresh = controlapi.PersonRemoved, nil, false
				}
			},
			"sign out everywhere": func(t *rapid.T) {
				email := anEmail.Draw(t, "email")
				expect("sign out", b.Sessions.SignOutEverywhere(ctx, accounts[email]), true)
			},
			"the owner revokes or approves an app": func(t *rapid.T) {
				app := anApp.Draw(t, "app")
				if i := slices.Index(live, app); i >= 0 {
					live = slices.Delete(live, i, i+1)
					for _, p := range model {
						p.take(app)
					}
				} else {
					live = append(live, app)
				}
				report()
			},
			"": func(t *rapid.T) {
				b.clock.Add(2 * time.Hour) // keeps the mail budgets out of the way
				before := version()
				s := programs.Got(b.Agents.Snapshot(ctx, id))(t)
				if s.Version != before {
					t.Fatalf("the version changed by itself")
				}
				seen := map[string]controlapi.Person{}
				for _, p := range s.People {
					seen[p.Email] = p
				}
				if o := seen[e.Email]; o.Role != controlapi.RoleOwner || o.Status != controlapi.PersonActive || len(o.Apps) != 0 {
					t.Fatalf("the owner is %+v", o)
				}
				for email, p := range model {
					p.pass(b.clock.Now())
					got, found := seen[email]
					if found != p.exists {
						t.Fatalf("%s: there %t, in the model %t", email, found, p.exists)
					}
					if !found {
						continue
					}
					want := slices.Sorted(maps.Keys(p.apps))
					if got.Status != p.status || !slices.Equal(got.Apps, want) || got.Role != controlapi.RoleMember {
						t.Fatalf("%s is %+v, in the model %+v", email, got, p)
					}
					if !sameEnds(got.Until, p.until) || !sameEnds(got.Ended, p.ended) {
						t.Fatalf("%s ends %v, %v, in the model %v, %v", email, got.Until, got.Ended, p.until, p.ended)
					}
				}
			},
		})
	})
}

// Every session of before must be over: the epoch rises with whatever ends
// sessions, and with nothing else.
func TestEpochRisesWhenSessionsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.apps(e, "app1", "app2")
	id := e.Computer.ID
	var last int64
	var account string
	look := func(what string, rises bool) {
		t.Helper()
		s := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), id))
		i := slices.IndexFunc(s.People, func(p controlapi.Person) bool { return p.Email == "bob@example.com" })
		if i < 0 {
			t.Fatalf("%s: bob has no row", what)
		}
		p := s.People[i]
		if rises != (p.Epoch > last) || p.Epoch < last {
			t.Errorf("%s: epoch %d after %d", what, p.Epoch, last)
		}
		last, account = p.Epoch, p.AccountID
	}
	invite := func() {
		t.Helper()
		b.clock.Add(time.Hour)
		ok[controlapi.Person](t)(b.People.Invite(t.Context(), id, controlapi.Invite{Email: "bob@example.com", Apps: []string{"app1"}}))
	}
	invite()
	look("invited", true)
	ok[Accepted](t)(b.People.AcceptInvitation(t.Context(), b.invitation("bob@example.com"), "", home))
	look("accepted", false)
	ok[controlapi.Person](t)(b.People.SetAccess(t.Context(), id, controlapi.SetAccess{AccountID: account, App: "app2", Granted: true}))
	ok[controlapi.Person](t)(b.People.SetAccess(t.Context(), id, controlapi.SetAccess{AccountID: account, App: "app1"}))
	look("granted and withdrawn", false)
	invite()
	look("invited while active", false)
	programs.Must(t, b.Sessions.SignOutEverywhere(t.Context(), account))
	look("signed out everywhere", true)
	b.session("s1", account)
	for _, c := range []struct {
		account, session string
		ends             bool
	}{{account, "s2", false}, {e.AccountID, "s1", false}, {account, "s1", true}, {account, "s1", false}} {
		programs.Must(t, b.Sessions.End(t.Context(), c.account, c.session))
		look("ended session "+c.session, c.ends)
	}
	ok[controlapi.Person](t)(b.People.Remove(t.Context(), id, controlapi.Remove{AccountID: account}))
	look("revoked", true)
	ok[controlapi.Person](t)(b.People.Remove(t.Context(), id, controlapi.Remove{AccountID: account}))
	look("revoked again", false)
	invite()
	look("invited again", true)
}

func TestOwnerCannotBeChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.apps(e, "app1")
	id, me := e.Computer.ID, e.AccountID
	tries := map[string]func() error{
		"invite": func() error {
			_, err := b.People.Invite(t.Context(), id, controlapi.Invite{Email: e.Email, Apps: []string{"app1"}})
			return err
		},
		"grant": func() error {
			_, err := b.People.SetAccess(t.Context(), id, controlapi.SetAccess{AccountID: me, App: "app1", Granted: true})
			return err
		},
		"withdraw": func() error {
			_, err := b.People.SetAccess(t.Context(), id, controlapi.SetAccess{AccountID: me, App: "app1"})
			return err
		},
		"revoke": func() error { _, err := b.People.Remove(t.Context(), id, controlapi.Remove{AccountID: me}); return err },
	}
	before := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), id))
	for name, try := range tries {
		if err := try(); !IsRefusal(err, controlapi.CodeForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), id))
	if before.Version != after.Version {
		t.Error("the snapshot changed")
	}
}

func TestInviteRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.apps(e, "app1")
	for name, tt := range map[string]struct {
		email string
		apps  []string
	}{
		"not an address": {"bob", []string{"app1"}},
		"no app":         {"bob@example.com", nil},
		"unknown app":    {"bob@example.com", []string{"app1", "app9"}},
	} {
		_, err := b.People.Invite(t.Context(), e.Computer.ID, controlapi.Invite{Email: tt.email, Apps: tt.apps})
		if !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := b.rows("account/") + b.rows("budget/"); n != 1 {
		t.Errorf("refused invitations left %d rows", n-1)
	}
}

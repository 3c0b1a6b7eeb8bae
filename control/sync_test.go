package control

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

func TestSnapshotSaysEverything(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	s := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID))
	if s.Version == "" || s.Computer != e.Computer || len(s.People) != 1 || s.People[0].Apps == nil ||
		s.RevokedGrants == nil || len(s.PublicKeys) != 1 || len(s.Relays) != 1 ||
		s.Billing != (controlapi.Billing{Plan: "self-hosted", Standing: "good"}) {
		t.Errorf("the snapshot is %+v", s)
	}
	other := b.made
	other.Relays = []controlapi.Relay{{Address: "127.0.0.1:9443", ServerName: "control.localhost"}}
	moved := ok[controlapi.Snapshot](t)(ok[*Service](t)(New(other)).Agents.Snapshot(t.Context(), e.Computer.ID))
	if moved.Version == s.Version {
		t.Error("another relay is not another version")
	}
	other.UpdateNotice = &controlapi.UpdateNotice{Address: "https://porch.example/update.json", Key: "AAAA"}
	told := ok[controlapi.Snapshot](t)(ok[*Service](t)(New(other)).Agents.Snapshot(t.Context(), e.Computer.ID))
	if told.Version == moved.Version || s.UpdateNotice != nil || *told.UpdateNotice != *other.UpdateNotice {
		t.Errorf("the operator's address of newer versions is told as %+v, and without one as %+v", told.UpdateNotice, s.UpdateNotice)
	}
	_, err := b.Agents.Snapshot(t.Context(), "nobody")
	wantRefusal(t, err, controlapi.CodeUnauthorized)
}

func TestEveryChangeIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	other := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "bob"))
	b.apps(e, "app1", "app2")
	watch, bystander := b.watch(e.Computer.ID), b.watch(other.Computer.ID)
	defer watch.unwatch()
	defer bystander.unwatch()
	id, account := e.Computer.ID, ""
	version := ""
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"invite", func() error {
			p, err := b.People.Invite(t.Context(), id, controlapi.Invite{Email: "eve@example.com", Apps: []string{"app1"}})
			account = p.AccountID
			return err
		}},
		{"accept", func() error {
			_, err := b.People.AcceptInvitation(t.Context(), b.invitation("eve@example.com"), "", home)
			return err
		}},
		{"grant", func() error {
			_, err := b.People.SetAccess(t.Context(), id, controlapi.SetAccess{AccountID: account, App: "app2", Granted: true})
			return err
		}},
		{"withdraw", func() error {
			_, err := b.People.SetAccess(t.Context(), id, controlapi.SetAccess{AccountID: account, App: "app1"})
			return err
		}},
		{"another app", func() error {
			return b.Agents.PutApps(t.Context(), id, controlapi.Apps{Apps: []controlapi.App{{ID: "app3", Name: "app3", Label: "app3"}}})
		}},
		{"apps gone", func() error { return b.Agents.PutApps(t.Context(), id, controlapi.Apps{}) }},
		{"sign out", func() error { return b.Sessions.SignOutEverywhere(t.Context(), account) }},
		{"revoke", func() error {
			_, err := b.People.Remove(t.Context(), id, controlapi.Remove{AccountID: account})
			return err
		}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if !watch.woken() { // before the call returned
			t.Errorf("%s was not told", step.name)
		}
		s := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), id))
		if s.Version == version {
			t.Errorf("%s made no new version", step.name)
		}
		version = s.Version
	}
	if bystander.woken() {
		t.Error("another computer was told")
	}
}

// Two nodes on one store: what one changes, a sync waiting at the other hears of.
func TestOtherNodesChangesAreSeen(t *testing.T) {
	t.Parallel()
	a := newBench(t, func(c *Config) { c.SharedStore = true })
	a.run()
	other := a.node()
	e := a.owner()
	watch := a.watch(e.Computer.ID)
	defer watch.unwatch()
	before := ok[controlapi.Snapshot](t)(a.Agents.Snapshot(t.Context(), e.Computer.ID))
	programs.Must(t, other.Sessions.SignOutEverywhere(t.Context(), e.AccountID))
	programs.Eventually(t, "the change is seen", func() bool {
		return watch.woken() && ok[controlapi.Snapshot](t)(a.Agents.Snapshot(t.Context(), e.Computer.ID)).Version != before.Version
	})
}

// Weakness: where the word was lost that a mail was put, a node that writes mails to files
// looked for it only at its next turn. Checked: it looks whenever something told was missed.
func TestAMissedWordLooksForMails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var missed atomic.Bool
		b := newBench(t, func(c *Config) {
			c.SharedStore, c.Tell, c.Missed = true, func([]string) {}, func() bool { return missed.Swap(false) }
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		looked := func() bool {
			time.Sleep(readMissedEvery + readVersionsEvery)
			synctest.Wait()
			select {
			case <-b.outbox.Looked():
				return true
			default:
				return false
			}
		}
		looked() // that of the start
		if looked() {
			t.Error("looked for mails though nothing was missed")
		}
		missed.Store(true)
		if !looked() {
			t.Error("something was missed, and no mail was looked for")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, change := range map[string]func(*Config){
		"no store":  func(c *Config) { c.Store = nil },
		"no mail":   func(c *Config) { c.Mail = nil },
		"no domain": func(c *Config) { c.Domain = "" },
		"a url":     func(c *Config) { c.AuthHost = "https://control.localhost" },
		"same host": func(c *Config) { c.AuthHost = c.Domain },
		"bad port":  func(c *Config) { c.PublicPort = 70000 },
	} {
		cfg := b.made
		change(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Weakness: a sign-in that is answered while the service ends could lose its
// mail: nobody is left who writes it.
// Checked: every sign-in answered with "look into your mail" has its mail, and
// every other one is told to try again. In a bubble, because a service that ends has a
// few seconds for its mails, which a busy machine may need for less.
func TestNoSignInIsLostWhenTheServiceEnds(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, noSignInIsLost)
	}
}

func noSignInIsLost(t *testing.T) {
	b := newBench(t, func(c *Config) { c.OpenSignUp = true })
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()

	var mu sync.Mutex
	answered, refused := 0, 0 // guarded by mu
	var wg sync.WaitGroup
	for n := range 60 {
		wg.Go(func() {
			if n == 30 {
				cancel()
			}
			_, err := b.SignIn.Begin(t.Context(), anID()+"@example.com", Browser{Client: network(n)}, "")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				answered++
			case IsRefusal(err, controlapi.CodeUnavailable):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	programs.Must(t, <-ended)
	if n := len(b.mails()); n != answered {
		t.Fatalf("%d sign-ins were answered and %d refused; %d mails were written", answered, refused, n)
	}
	_, err := b.SignIn.Begin(t.Context(), "late@example.com", Browser{Client: home}, "")
	wantRefusal(t, err, controlapi.CodeUnavailable)
}

// Waiting syncs are told to end before the rest does.
func TestDrainEndsSyncsOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.owner()
	b.run()
	b.Feed.Drain()
	b.Feed.Drain()
	b.begin("maya@example.com", 1) // and has its mail
}

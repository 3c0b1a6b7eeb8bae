package control

import (
	"testing"
	"time"

	"porchlight/control/controlapi"
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
	other := b.cfg
	other.Relays = []controlapi.Relay{{Address: "127.0.0.1:9443", ServerName: "control.localhost"}}
	moved := ok[controlapi.Snapshot](t)(ok[*Service](t)(New(other)).Agents.Snapshot(t.Context(), e.Computer.ID))
	if moved.Version == s.Version {
		t.Error("another relay is not another version")
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
	watch, bystander := b.Agents.Watch(e.Computer.ID), b.Agents.Watch(other.Computer.ID)
	defer watch.Stop()
	defer bystander.Stop()
	id, account := e.Computer.ID, ""
	version := ""
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"invite", func() error {
			p, err := b.People.Invite(t.Context(), id, "eve@example.com", []string{"app1"})
			account = p.AccountID
			return err
		}},
		{"accept", func() error {
			_, err := b.People.AcceptInvitation(t.Context(), b.invitation("eve@example.com"), "", home)
			return err
		}},
		{"grant", func() error { _, err := b.People.Give(t.Context(), id, account, "app2"); return err }},
		{"withdraw", func() error { _, err := b.People.Withdraw(t.Context(), id, account, "app1"); return err }},
		{"app gone", func() error { return b.Agents.PutApps(t.Context(), id, nil) }},
		{"sign out", func() error { return b.Sessions.SignOutEverywhere(t.Context(), account) }},
		{"revoke", func() error { _, err := b.People.Remove(t.Context(), id, account); return err }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		select {
		case <-watch.Changed: // before the call returned
		default:
			t.Errorf("%s was not told", step.name)
		}
		s := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), id))
		if s.Version == version {
			t.Errorf("%s made no new version", step.name)
		}
		version = s.Version
	}
	select {
	case <-bystander.Changed:
		t.Error("another computer was told")
	default:
	}
}

func TestWatchesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.Agents.Watch("x")
	defer first.Stop()
	for range syncsPerComputer {
		select {
		case <-first.Replaced:
			t.Fatal("replaced too early")
		default:
		}
		defer b.Agents.Watch("x").Stop()
	}
	select {
	case <-first.Replaced:
	default:
		t.Error("the oldest watch was not replaced")
	}
}

// Two nodes on one store: what one changes, a sync held by the other hears of.
func TestOtherNodesChangesAreSeen(t *testing.T) {
	t.Parallel()
	a := newBench(t, func(c *Config) { c.SharedStore = true })
	a.run()
	other := ok[*Service](t)(New(a.cfg))
	e := a.owner()
	watch := a.Agents.Watch(e.Computer.ID)
	defer watch.Stop()
	before := ok[controlapi.Snapshot](t)(a.Agents.Snapshot(t.Context(), e.Computer.ID))
	if err := other.Sessions.SignOutEverywhere(t.Context(), e.AccountID); err != nil {
		t.Fatal(err)
	}
	late := time.After(30 * time.Second)
	for {
		select {
		case <-watch.Changed:
		case <-late:
			t.Fatal("the change was not seen")
		}
		if s := ok[controlapi.Snapshot](t)(a.Agents.Snapshot(t.Context(), e.Computer.ID)); s.Version != before.Version {
			return
		}
	}
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
		cfg := b.cfg
		change(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

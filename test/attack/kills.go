//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// house is what an agent acknowledged and has to have after every kill.
type house struct {
	apps      map[string]agentapi.Status
	people    map[string]string // status, by mail address
	forwarded map[string]bool   // option Forwarded, by app
	hours     int               // setting FailStaticHours
	dark      bool
	ids       map[string]string // account, by mail address
	account   string
}

// change is something that is acknowledged; n counts the changes so far.
type change struct {
	what string
	do   func(ctx context.Context, c *computer, h *house, n int) error
}

func appName(n int) string { return fmt.Sprintf("app-%d", n) }

// The changes come round and round. Every one refers to what those before made.
var changes = []change{
	{"ask", func(ctx context.Context, c *computer, h *house, n int) error {
		_, err := c.open.Publish(ctx, agentapi.PublishRequest{Name: appName(n), Label: "App " + appName(n), LocalPort: 10000 + n})
		h.apps[appName(n)] = agentapi.StatusPending
		return err
	}},
	{"approve", func(ctx context.Context, c *computer, h *house, n int) error {
		_, err := c.owner.Approve(ctx, appName(n-1))
		h.apps[appName(n-1)] = agentapi.StatusLive
		return err
	}},
	{"invite", func(ctx context.Context, c *computer, h *house, n int) error {
		email := fmt.Sprintf("p%d@example.net", n)
		_, err := c.owner.Invite(ctx, agentapi.InviteRequest{Email: email, Apps: []string{"App " + appName(n-2)}})
		h.people[email] = agentapi.PersonPending
		return err
	}},
	{"options", func(ctx context.Context, c *computer, h *house, n int) error {
		_, err := c.owner.ChangeOptions(ctx, appName(n-3), map[string]any{"forwarded": true})
		h.forwarded[appName(n-3)] = true
		return err
	}},
	{"settings", func(ctx context.Context, c *computer, h *house, n int) error {
		h.hours = n % 25
		_, err := c.owner.ChangeSettings(ctx, map[string]any{"failStaticHours": h.hours})
		return err
	}},
	{"remove", func(ctx context.Context, c *computer, h *house, n int) error {
		email := fmt.Sprintf("p%d@example.net", n-3)
		_, err := c.owner.Remove(ctx, h.ids[email])
		h.people[email] = agentapi.PersonRemoved
		return err
	}},
	{"dark", func(ctx context.Context, c *computer, h *house, n int) error {
		h.dark = !h.dark
		if !h.dark {
			return c.owner.LightUp(ctx)
		}
		_, err := c.owner.GoDark(ctx)
		return err
	}},
	{"withdraw", func(ctx context.Context, c *computer, h *house, n int) error {
		_, err := c.open.Unpublish(ctx, appName(n-7))
		h.apps[appName(n-7)] = agentapi.StatusStopped
		return err
	}},
	{"revoke", func(ctx context.Context, c *computer, h *house, n int) error {
		_, err := c.owner.Revoke(ctx, appName(n-8))
		delete(h.apps, appName(n-8))
		delete(h.forwarded, appName(n-8))
		return err
	}},
}

// attackKills kills agents and control planes right after they acknowledged a
// change. Every acknowledged change is there after the next start.
func attackKills(ctx context.Context, s *stage, t *tally) error {
	agents, planes := 100, 20
	if s.quick {
		agents, planes = 9, 3
	}
	fmt.Printf("   agents %d (changes %d, round and round) + control planes %d\n", agents, len(changes), planes)
	h := &house{apps: map[string]agentapi.Status{}, people: map[string]string{}, forwarded: map[string]bool{}, ids: map[string]string{}, hours: -1}
	data := filepath.Join(s.dir, "data")
	// Another program could have a port that the agent draws itself by the next start.
	port, giveBack, err := programs.Port()
	if err != nil {
		return err
	}
	defer giveBack()
	for n := range agents + 1 {
		c, err := s.startComputer(ctx, data, "--https", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.got("start %d after a kill: %v", n, err)
			return nil
		}
		if err := h.check(ctx, c, func(lost string) {
			t.got("kill %d, after %q: %s", n, changes[(n+len(changes)-1)%len(changes)].what, lost)
		}); err != nil {
			return err
		}
		if n == agents {
			break
		}
		if err := changes[n%len(changes)].do(ctx, c, h, n); err != nil {
			return fmt.Errorf("%s: %w", changes[n%len(changes)].what, err)
		}
		c.Kill()
		t.try(1)
	}
	return s.killPlanes(ctx, t, planes)
}

// check holds what an agent has against what it acknowledged.
func (h *house) check(ctx context.Context, c *computer, lost func(string)) error {
	state, err := c.owner.State(ctx)
	if err != nil {
		return err
	}
	if h.account == "" {
		h.account = state.Account.AccountID
	}
	if state.Account.AccountID != h.account {
		lost("it belongs to another account")
	}
	if h.dark != (state.DarkSince != nil) {
		lost(fmt.Sprintf("everything closed is %v, not %v", state.DarkSince != nil, h.dark))
	}
	for name, status := range h.apps {
		i := slices.IndexFunc(state.Apps, func(a agentapi.OwnerApp) bool { return a.Name == name })
		if i < 0 || state.Apps[i].Status != status || h.forwarded[name] != state.Apps[i].Options.Forwarded {
			lost(fmt.Sprintf("%s is not %s any more, or its options are lost", name, status))
		}
	}
	if len(state.Apps) != len(h.apps) {
		lost(fmt.Sprintf("%d apps instead of %d", len(state.Apps), len(h.apps)))
	}
	people, err := c.owner.People(ctx)
	if err != nil {
		return err
	}
	found := 0
	for _, p := range people.Members {
		if want, ok := h.people[p.Email]; ok {
			found++
			h.ids[p.Email] = p.AccountID
			if p.Status != want {
				lost(fmt.Sprintf("%s is %s, not %s", p.Email, p.Status, want))
			}
		}
	}
	if found != len(h.people) {
		lost(fmt.Sprintf("%d people instead of %d", found, len(h.people)))
	}
	settings, err := c.owner.Settings(ctx)
	if err == nil && h.hours >= 0 && settings.FailStaticHours != h.hours {
		lost(fmt.Sprintf("access lasts %d hours, not %d", settings.FailStaticHours, h.hours))
	}
	return err
}

// killPlanes does the same to control planes, with the operator's commands.
func (s *stage) killPlanes(ctx context.Context, t *tally, kills int) error {
	data := filepath.Join(s.dir, "plane")
	accounts, clients := map[string]bool{}, map[string]bool{}
	for n := range kills + 1 {
		c, err := s.startPlane(ctx, data)
		if err != nil {
			t.got("start %d of a control plane after a kill: %v", n, err)
			return nil
		}
		var have []struct{ Email string }
		var known []struct{ Name string }
		if err := c.Run(&have, "account", "list"); err != nil {
			return err
		}
		if err := c.Run(&known, "client", "list"); err != nil {
			return err
		}
		if len(have) != len(accounts) || len(known) != len(clients) {
			t.got("kill %d of a control plane: %d of %d accounts, %d of %d clients", n, len(have), len(accounts), len(known), len(clients))
		}
		if n == kills {
			break
		}
		email, client := fmt.Sprintf("o%d@example.net", n), fmt.Sprintf("Client %d", n)
		switch n % 4 {
		case 0, 2:
			accounts[email] = true
			err = c.Run(nil, "account", "add", email)
		case 1:
			clients[client] = true
			err = c.Run(nil, "client", "add", "--name", client, "--redirect-uri", "https://notes.example/cb")
		case 3:
			gone := fmt.Sprintf("o%d@example.net", n-3)
			delete(accounts, gone)
			err = c.Run(nil, "account", "remove", gone)
		}
		if err != nil {
			return err
		}
		c.Kill()
		t.try(1)
	}
	return nil
}

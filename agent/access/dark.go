package access

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// GoDark closes everything to everybody, the owner included, until LightUp, and
// returns how many live connections it closed. Approvals, people and sessions
// stay; the control plane is not told. It holds across restarts: the record is
// durable before access ends, and when it cannot be written access ends anyway
// and the error says so. Going dark again keeps the first time.
func (a *Access) GoDark() (closed int, err error) {
	a.writing.Lock()
	defer a.writing.Unlock()
	now := a.state.Load()
	since := now.dark
	if since == nil {
		at := a.now().UTC()
		since = &at
	}
	err = a.store.SetDark(since)
	next := *now
	next.dark = since
	closed = a.swap(&next)
	if err != nil {
		return closed, fmt.Errorf("everything is closed, but that could not be kept for a restart: %w", err)
	}
	return closed, nil
}

// LightUp takes a GoDark back. Nobody has to sign in again for it.
func (a *Access) LightUp() error {
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := a.store.SetDark(nil); err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	next := *a.state.Load()
	next.dark = nil
	a.swap(&next)
	return nil
}

// DarkSince is when the owner closed everything; nil when they have not.
func (a *Access) DarkSince() *time.Time { return a.state.Load().dark }

// Here says who has something open now: the addresses for each app id, sorted,
// at most agentapi.MaxNamed each, and how many people they are together.
func (a *Access) Here() (byApp map[string][]string, people int) {
	st := a.state.Load()
	everyone := map[string]bool{}
	here := map[string]map[string]bool{}
	a.live.mu.Lock()
	for c := range a.live.conns {
		if c.closed || c.app == "" {
			continue
		}
		everyone[c.id.AccountID] = true
		if here[c.app] == nil {
			here[c.app] = map[string]bool{}
		}
		here[c.app][c.id.AccountID] = true
	}
	a.live.mu.Unlock()
	byApp = make(map[string][]string, len(here))
	for app, accounts := range here {
		emails := make([]string, 0, len(accounts))
		for id := range maps.Keys(accounts) {
			if p := st.people[id]; p != nil {
				emails = append(emails, p.Email)
			}
		}
		slices.Sort(emails)
		byApp[app] = emails[:min(len(emails), agentapi.MaxNamed)]
	}
	return byApp, len(everyone)
}

// bare is a deny record as a map key.
func bare(d store.DenyRecord) store.DenyRecord {
	d.At = time.Time{}
	return d
}

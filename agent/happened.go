package agent

import (
	"context"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/certs"
)

// What happened by itself, for the owner to read.

// serverAwayAfter is how long the control plane has not answered when that is
// written down: roaming takes a moment.
const serverAwayAfter = time.Minute

// AddActivity keeps a line of what happened.
func (a *Agent) AddActivity(line agentapi.Activity) { a.activity.Add(line) }

// watchServer writes down when the control plane has not answered for a while, and
// when it does again.
func (a *Agent) watchServer(ctx context.Context) error {
	changed, cancel := a.changes.Subscribe()
	defer cancel()
	later := time.NewTimer(serverAwayAfter)
	defer later.Stop()
	host, away := strings.TrimPrefix(a.authURL(), "https://"), false
	for {
		state := a.remote.State()
		lasts := time.Since(state.Since)
		switch {
		case state.Connected && away:
			away = false
			a.AddActivity(agentapi.Activity{Kind: agentapi.ActivityServerBack, What: host})
		case state.Connected || away || state.Refused:
		case lasts >= serverAwayAfter:
			away = true
			a.AddActivity(agentapi.Activity{At: state.Since, Kind: agentapi.ActivityServerAway, What: host})
		default:
			later.Reset(serverAwayAfter - lasts)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-later.C:
		}
	}
}

// watchCertificates writes down which certificates cannot be had, and which were
// renewed, of those that are ordered.
func (a *Agent) watchCertificates(ctx context.Context) error {
	changed, cancel := a.certified.Subscribe()
	defer cancel()
	seen := map[string]certs.State{}
	for {
		now := map[string]certs.State{}
		for _, name := range a.names.Ordered() {
			state, known := a.certs.State(name)
			before, was := seen[name]
			switch {
			case known && !state.Problem.IsZero() && before.Problem.IsZero():
				a.AddActivity(agentapi.Activity{Kind: agentapi.ActivityCertificateTrouble, What: name})
			case known && state.Problem.IsZero() && was && !before.NotAfter.IsZero() && state.NotAfter.After(before.NotAfter):
				a.AddActivity(agentapi.Activity{Kind: agentapi.ActivityCertificateRenewed, What: name, Until: state.NotAfter})
			}
			if known {
				now[name] = state
			}
		}
		if len(now) > 0 {
			seen = now // none are ordered while no relay is there, which is no change of theirs
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

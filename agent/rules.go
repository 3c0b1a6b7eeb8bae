package agent

import (
	"fmt"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/rules"
)

// makeRules wires what the owner decides about everything at once.
func (a *Agent) makeRules() (err error) {
	a.rules, err = rules.New(rules.Config{
		Store:    a.store,
		Access:   a.access,
		Away:     a.away,
		OnChange: a.changes.Raise,
		Tell:     func(n agentapi.Notice) error { return a.apps.Tell(n, nil) },
		Log:      a.cfg.Log.With("part", "rules"),
	})
	return err
}

// away says whether there is a control plane that does not answer now.
func (a *Agent) away() bool { return a.remote != nil && !a.remote.State().Connected }

// silence is a sentence about how long people keep their access while the
// control plane is away.
func (a *Agent) silence() string {
	until, ok := a.access.AccessUntil()
	if !ok {
		return "The control plane has not answered for too long, so nobody can open your apps until it does."
	}
	local, format := until.Local(), "15:04"
	if y, m, d := time.Now().Date(); local.Day() != d || local.Month() != m || local.Year() != y {
		format = "15:04 on 2 January"
	}
	return fmt.Sprintf("The control plane does not answer. Everyone keeps the access they have until %s.", local.Format(format))
}

// clientName names the remote client of an OAuth grant, as last read; empty when
// it is not known.
func (a *Agent) clientName(grantID string) string {
	for _, g := range a.people.Grants() {
		if g.ID == grantID {
			return g.ClientName
		}
	}
	return ""
}

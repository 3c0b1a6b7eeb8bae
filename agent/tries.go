package agent

import (
	"context"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
)

// makeTries comes after everything between a visitor and the apps, which it tries.
func (a *Agent) makeTries() *doctor.Tries {
	return doctor.NewTries(doctor.TriesConfig{
		DataDir: a.cfg.DataDir,
		Version: Version,
		Local:   a.local(),
		Host: func() string {
			if a.tunnel == nil {
				return ""
			}
			return a.computer().Host
		},
		Closed: func() bool { return a.access.DarkSince() != nil },
		Visit:  a.proxy.Visit,
		Ask: func(ctx context.Context, name string) (agentapi.AppHealth, error) {
			app, _ := a.apps.Lookup(name)
			return a.health.Probe(ctx, app.ID), nil
		},
		Authorities: a.cfg.Authorities,
		Own:         a.cfg.OwnAuthority,
		Domains: func() []agentapi.OwnDomain {
			all, _ := a.people.ListDomains(context.Background()) // of the last snapshot
			return all
		},
		Wake: func() {
			if a.remote != nil {
				a.tunnel.Wake()
				a.remote.Wake()
			}
			if a.acme != nil {
				a.acme.Again()
			}
		},
	})
}

package agent

import (
	"porchlight/agent/health"
	"porchlight/agent/upstream"
	"porchlight/control/controlapi"
)

// makeHealth comes after the engine, which tells it what changed, and which it asks
// which apps there are.
func (a *Agent) makeHealth() error {
	a.health = health.New(health.Config{
		Find:      a.apps.ByID,
		Root:      a.root,
		Welcomes:  a.apps.Welcomes,
		ShowedKey: a.apps.ShowedKey,
		Elsewhere: a.apps.Elsewhere,
		Socket: func(target upstream.Target) uint64 {
			_, socket := listenerUser(target)
			return socket
		},
		On:      func() bool { return a.settings.Get().Probe },
		Changes: a.changes,
		Log:     a.cfg.Log.With("part", "health"),
	})
	return nil
}

// addressChanged has every app asked by its new address, before a visitor does.
func (a *Agent) addressChanged(before, now controlapi.Computer) {
	if now.Host == before.Host || now.Host == "" {
		return
	}
	for _, app := range a.apps.Approved() {
		a.health.Renamed(app.ID)
	}
}

package agent

import (
	"context"

	"porchlight/agent/agentapi"
	"porchlight/agent/health"
	"porchlight/agent/upstream"
	"porchlight/control/controlapi"
)

// makeHealth comes after the engine, which tells it what changed, and which it asks
// which apps there are.
func (a *Agent) makeHealth() error {
	a.health = health.New(health.Config{
		Find:   a.asked,
		Live:   a.live,
		Checks: a.checksOf,
		Moved: func(ctx context.Context, app health.App) bool {
			now, ok := a.apps.ByID(app.ID)
			return ok && a.apps.Elsewhere(ctx, now.Name, app.Target)
		},
		AwaitAnswer: func(id string) { a.proxy.AwaitAnswer(id) },
		Socket: func(app health.App) uint64 {
			_, socket := listenerUser(app.Target)
			return socket
		},
		On:      func() bool { return a.settings.Get().Probe },
		Changes: a.changes,
		Log:     a.cfg.Log.With("part", "health"),
	})
	return nil
}

// live says whether an app is approved and on, paused or not.
func (a *Agent) live(id string) bool {
	app, ok := a.apps.ByID(id)
	return ok && app.Status == agentapi.StatusLive
}

// gone forgets how an app did that visitors cannot open now. Of one that is on all the
// same, paused or at another port, health keeps what it knows until the next answer.
func (a *Agent) gone(id string) {
	a.health.Gone(id)
	a.proxy.Forget(id)
	if a.live(id) {
		a.proxy.AwaitAnswer(id)
	}
}

// asked is an app as its health is asked for; false of one that visitors cannot open.
func (a *Agent) asked(id string) (health.App, bool) {
	app, ok := a.apps.ByID(id)
	host := a.computer().Host
	if !ok || host == "" || app.Paused || !app.Live {
		return health.App{}, false
	}
	return health.App{ID: id, Host: app.Name + "." + host, Target: app.Target(), Options: app.Options}, true
}

// checksOf are those of a visitor's connection to an app.
func (a *Agent) checksOf(ctx context.Context, app health.App) upstream.Checks {
	now, ok := a.apps.ByID(app.ID)
	return upstream.Checks{
		Peer: func(peer agentapi.Listener) bool { return ok && a.apps.Welcomes(now.Name, app.Target, peer) },
		Key:  func(key string) bool { return ok && a.apps.ShowedKey(ctx, now.Name, key) },
	}
}

// reached has an app asked that visitors reach otherwise than before.
func (a *Agent) reached(id string, byOwner bool) {
	a.proxy.HintAgain(id) // what is there now may know its address
	if byOwner {
		a.health.Ask(id)
	} else {
		a.health.Changed(id)
	}
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

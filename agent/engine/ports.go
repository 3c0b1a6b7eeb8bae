package engine

import (
	"time"

	"porchlight/agent/agentapi"
)

// Who listens for the apps shows without a visitor.
//
// The engine looks, and not health: it is the one that follows a program to the other
// address of this computer, and that finds the program of a request. How an app does it does
// not keep: health is told with each look. Were it health that looks, it would walk over the
// same apps and have to ask the engine for both.

const (
	// portsEvery is the least time between two looks at all ports: the owner's state
	// is made anew for every connection that comes or goes.
	portsEvery = 2 * time.Second
	// portsFor bounds one look. A port that was not reached stays as it was, and is
	// reached at a later look: a map is read in another order every time.
	portsFor = 300 * time.Millisecond
)

// lookAtPorts tells which of the live apps somebody listens for, and has the program of a
// request looked for that was not found yet: by its name the owner decides.
func (a *Apps) lookAtPorts() {
	if a.cfg.Listens == nil {
		return
	}
	a.looking.Lock()
	defer a.looking.Unlock()
	began, now := time.Now(), a.shown.Load()
	if now == a.lookedAll && began.Sub(a.lookedAt) < portsEvery {
		return
	}
	for name, app := range now.byName {
		if l := app.kept.Listener; app.Status == agentapi.StatusPending && l.Program == "" && l.UserID != "" {
			a.lookLater(look{name: name, port: app.Port})
		}
		if app.Status != agentapi.StatusLive {
			continue
		}
		listening := a.cfg.Listens(app.Target())
		if a.cfg.OnListening != nil {
			a.cfg.OnListening(app, listening)
		}
		if !listening && app.Options.Socket() == "" && a.cfg.Listens(app.Target().Other()) {
			a.lookLater(look{name: name, port: app.Port, moved: true})
		}
		if time.Since(began) > portsFor {
			break
		}
	}
	a.lookedAt, a.lookedAll = time.Now(), now
}

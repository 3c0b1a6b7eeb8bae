package engine

import (
	"time"

	"porchlight/agent/agentapi"
)

// Whether an app answers is read from its port: that nobody listens there shows
// without a visitor. An app that listens and accepts no connection is noticed only
// when somebody opens it.

const (
	// portsEvery is the least time between two looks at all ports: the owner's state
	// is made anew for every connection that comes or goes.
	portsEvery = 2 * time.Second
	// portsFor bounds one look. A port that was not reached stays as it was, and is
	// reached at a later look: a map is read in another order every time.
	portsFor = 300 * time.Millisecond
)

// lookAtPorts sees who of the live apps has nobody listening, and has the program of a
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
		a.noteListening(name, app, listening)
		if !listening && app.Options.Socket() == "" && a.cfg.Listens(app.Target().Other()) {
			a.lookLater(look{name: name, port: app.Port, moved: true})
		}
		if time.Since(began) > portsFor {
			break
		}
	}
	a.lookedAt, a.lookedAll = time.Now(), now
}

// noteListening notes whether anybody listens for an app, unless it has changed
// since it was looked up. A program that has just begun to listen counts as answering.
func (a *Apps) noteListening(name string, seen App, listening bool) {
	if a.setListening(name, seen, listening) && a.cfg.OnListening != nil {
		a.cfg.OnListening(seen.ID, listening)
	}
}

// setListening is false for an app that has changed.
func (a *Apps) setListening(name string, seen App, listening bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	row := a.rows[name]
	if row.App == nil || row.App.ID != seen.ID || row.App.LocalPort != seen.Port || row.App.Address != seen.Address || row.App.Status != agentapi.StatusLive {
		return false
	}
	_, was := a.dead[seen.ID]
	switch {
	case !listening:
		a.dead[seen.ID] = struct{}{}
	case was:
		delete(a.dead, seen.ID)
		delete(a.unanswered, seen.ID)
	}
	return true
}

// SetAnswering notes whether an app accepted the last connection. Where nobody listens
// on its port, that is noted instead, and ends when somebody listens again.
func (a *Apps) SetAnswering(appID string, answering bool) {
	app, live := a.ByID(appID)
	if !answering && live && a.cfg.Listens != nil && !a.cfg.Listens(app.Target()) {
		a.noteListening(app.Name, app, false)
		a.cfg.Changes.Raise()
		return
	}
	a.mu.Lock()
	before := a.answers(appID)
	if answering {
		delete(a.unanswered, appID)
		delete(a.dead, appID)
	} else if live {
		a.unanswered[appID] = struct{}{}
	}
	changed := before != a.answers(appID)
	a.mu.Unlock()
	if changed {
		a.cfg.Changes.Raise()
	}
}

// answers is what is known of an app. mu is held.
func (a *Apps) answers(id string) bool {
	_, failed := a.unanswered[id]
	_, dead := a.dead[id]
	return !failed && !dead
}

// ByID finds an approved app, and is false where there is none. It takes no lock.
func (a *Apps) ByID(id string) (App, bool) {
	for _, app := range a.shown.Load().byLabel {
		if app.ID == id && id != "" {
			return app, true
		}
	}
	return App{}, false
}

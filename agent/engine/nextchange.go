package engine

import (
	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// found is what follows when somebody is found listening on an app's port without
// having published.
func found(now stored, e event) outcome {
	switch {
	case now.App.LocalPort != e.Port, now.App.Options.Socket() != e.Socket, !e.Listening:
		return outcome{stored: now}
	case now.App.Status == agentapi.StatusLive && (now.App.Address != e.Address) != e.Moved:
		return outcome{stored: now} // it has moved since
	}
	app := *now.App
	out := outcome{stored: stored{App: &app, Denial: now.Denial}}
	switch {
	case app.Status == agentapi.StatusPending:
		app.Listener, app.Address = e.Listener, e.Address
		if app.Approved != nil {
			was := *app.Approved
			was.OtherUser = otherUser(&app, e)
			app.Approved = &was
			if e.Behind != nil {
				app.Container = e.container()
			}
		}
	case app.Status != agentapi.StatusLive:
	case otherUser(&app, e):
		e.Label = app.Label
		asker := app.Asker
		out = askingAgain(now, e)
		out.App.Asker = asker // nobody asked
	default:
		app.Listener, app.Address = e.Listener, e.Address
		out.Notices = changes(*now.App, app, e.At)
		if app.ApprovedFor == nil {
			out.Notices = append(out.Notices, record(&app, e))
		}
	}
	return out
}

// showed is what follows when an app whose key is pinned shows one that was not kept:
// the first is kept, and for any other the app waits for the owner.
func showed(now stored, e event) outcome {
	if !approved(now.App) || !now.App.Options.Pin || now.App.Status != agentapi.StatusLive || now.App.Key == e.Key {
		return outcome{stored: now}
	}
	if now.App.Key == "" {
		app := *now.App
		app.Key = e.Key
		return outcome{stored: stored{App: &app, Denial: now.Denial}}
	}
	e.Label, e.Port, e.Address, e.Listener = now.App.Label, now.App.LocalPort, now.App.Address, now.App.Listener
	out := askingAgain(now, e)
	out.App.Asker, out.App.Key, out.App.Approved.OtherKey = now.App.Asker, e.Key, true // nobody asked
	out.App.Container = now.App.Container
	return out
}

// forgetKey has the next key that is pinned be the first one. An app that waits because
// of its key alone is live when it publishes again.
func forgetKey(app *store.App) {
	app.Key = ""
	if app.Approved == nil {
		return
	}
	was := *app.Approved
	was.Key, was.OtherKey = "", false
	app.Approved = &was
}

// askingAgain has an approved app wait for the owner because its port changed, the
// user whose program listens there, or the key it shows. The approval stays as it was
// until they answer.
func askingAgain(now stored, e event) outcome {
	app, was := *now.App, approvedOf(now.App)
	if app.Status != agentapi.StatusPending {
		app.RequestedAt, app.Quiet = e.At, e.AskedLately
	}
	app.Status, app.Approved = agentapi.StatusPending, &was
	app.Quiet = quiet(now.Denial, e.At) || now.Denial == nil && app.Quiet
	app.Label, app.LocalPort, app.Listener, app.Asker = e.Label, e.Port, e.Listener, e.By.asker()
	app.Address, app.Container = e.Address, e.container()
	was.OtherUser = otherUser(&app, e)
	out := outcome{stored: stored{App: &app, Denial: now.Denial}}
	if now.App.Status == agentapi.StatusLive {
		out.Gone = app.ID
	}
	return out
}

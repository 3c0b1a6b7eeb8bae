package engine

import (
	"reflect"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/test/programs"
)

// kept is the state of a name with an app.
func kept(app store.App) stored { return stored{App: &app} }

// left is the state that an outcome leaves.
func left(o outcome) stored { return o.stored }

// happens is what comes of an event, whatever that is: no step changes the row it is given.
func happens(t testing.TB, now stored, e event) (outcome, error) {
	t.Helper()
	var before store.App
	if now.App != nil {
		before = *now.App
	}
	out, err := next(now, e)
	if now.App != nil && !reflect.DeepEqual(*now.App, before) {
		t.Errorf("%s changed the row it was given: %+v", e.Kind, now.App)
	}
	return out, err
}

// after is the state once something has happened that nothing refuses.
func after(t testing.TB, now stored, e event) stored {
	t.Helper()
	return left(programs.Got(happens(t, now, e))(t))
}

// none is the state of a name of which nothing is stored.
var none stored

// on is an event that needs nothing but its kind.
func on(kind kind) event { return event{Kind: kind} }

func (e event) when(at time.Time) event { e.At = at; return e }

// asks is an app that asks; whoever listens on its port may be given.
func asks(label string, port int, by ...agentapi.Listener) event {
	e := on("publish")
	e.Label, e.Port = label, port
	for _, e.Listener = range by {
		e.Listening, e.Own = true, ownUsers
	}
	return e
}

// asksAgain is asks where an approved app whose port changed is to wait for the owner.
func asksAgain(label string, port int) event {
	e := asks(label, port)
	e.AskAgain = true
	return e
}

// comes is somebody who was found listening on an app's port.
func comes(port int, l agentapi.Listener) event {
	e := asks("", port, l)
	e.Kind = "found"
	return e
}

// approves is the owner's yes, by which a new app gets this id.
func approves(id string) event {
	e := on("approve")
	e.NewID = id
	return e
}

// shows is a key that the app showed over HTTPS.
func shows(key string) event {
	e := on("key")
	e.Key = key
	return e
}

// chooses is what the owner does to the options.
func chooses(change func(*agentapi.AppOptions)) event {
	e := on("choose")
	e.Change = change
	return e
}

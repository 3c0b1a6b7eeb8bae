package localapi

import (
	"net/http"

	"porchlight/agent/agentapi"
)

// How apps do, as agent/health knows it.

// addHealth fills it in for the apps of a state.
func (a *API) addHealth(state *agentapi.OwnerState) {
	for i := range state.Apps {
		out := &state.Apps[i]
		app, ok := a.cfg.Apps.Lookup(out.Name)
		if !ok || out.Status != agentapi.StatusLive {
			continue
		}
		out.AppHealth = a.cfg.Health.Of(app.ID)
		out.Lit = app.Live && !out.Paused && state.DarkSince == nil && out.Ailment == ""
	}
}

// awaitHealth is how an app does that was just approved and is being asked; nil where
// that is not known.
func (a *API) awaitHealth(r *http.Request) *agentapi.AppHealth {
	app, ok := a.cfg.Apps.Lookup(r.PathValue("name"))
	if !ok {
		return nil
	}
	does := a.cfg.Health.Await(r.Context(), app.ID)
	if does.Health == agentapi.HealthUnknown {
		return nil
	}
	return &does
}

// probe asks an app for its first page. It is nothing new that a minute has not
// passed, and no failure of the call that the app does not answer.
func (a *API) probe(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if err := a.cfg.Apps.Opens(name); err != nil {
		return nil, err
	}
	app, ok := a.cfg.Apps.Lookup(name)
	if !ok {
		return agentapi.AppHealth{}, nil
	}
	return a.cfg.Health.Probe(r.Context(), app.ID), nil
}

// errNoTries is of an agent that was made without the means.
var errNoTries = agentapi.Errorf(agentapi.CodeUnavailable, "This Porchlight cannot try its addresses.")

// try goes the way of a visitor to an app's address. That it does not work is no failure
// of the call.
func (a *API) try(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if err := a.cfg.Apps.Opens(name); err != nil {
		return nil, err
	}
	if a.cfg.Tries == nil {
		return nil, errNoTries
	}
	return a.cfg.Tries.Address(r.Context(), name), nil
}

// examine looks at everything between a visitor and the apps.
func (a *API) examine(r *http.Request) (any, error) {
	if a.cfg.Tries == nil {
		return nil, errNoTries
	}
	state, err := a.state(r.Context())
	if err != nil {
		return nil, err
	}
	return a.cfg.Tries.Everything(r.Context(), state)
}

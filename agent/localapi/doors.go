package localapi

import (
	"net/http"

	"porchlight/agent/agentapi"
)

// pause closes one app; resume opens it again.
func (a *API) pause(w http.ResponseWriter, r *http.Request) error {
	closed, err := a.cfg.Apps.Pause(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, closed)
}

func (a *API) resume(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Apps.Resume(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

// setOptions replaces the options of an app. Every field has to be there: one
// that was forgotten would quietly become its default.
func (a *API) setOptions(w http.ResponseWriter, r *http.Request) error {
	f, err := readFields(r, "forwarded", "localhostHost", "identityHeader", "identityValue", "allowCrossOrigin", "h2c")
	if err != nil {
		return err
	}
	var o agentapi.AppOptions
	for name, to := range map[string]*bool{
		"forwarded": &o.Forwarded, "localhostHost": &o.LocalhostHost, "allowCrossOrigin": &o.AllowCrossOrigin, "h2c": &o.H2C,
	} {
		if *to, err = f.truth(name); err != nil {
			return err
		}
	}
	for name, to := range map[string]*string{"identityHeader": &o.IdentityHeader, "identityValue": &o.IdentityValue} {
		if *to, err = f.text(name); err != nil {
			return err
		}
	}
	if o, err = a.cfg.Apps.SetOptions(r.Context(), r.PathValue("name"), o); err != nil {
		return err
	}
	return answer(w, http.StatusOK, o)
}

// goDark closes everything; lightUp opens it again.
func (a *API) goDark(w http.ResponseWriter, _ *http.Request) error {
	closed, err := a.cfg.Rules.GoDark()
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, closed)
}

func (a *API) lightUp(w http.ResponseWriter, _ *http.Request) error {
	if err := a.cfg.Rules.LightUp(); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

// addRules fills in what the owner's state says of doors and who is behind them.
func (a *API) addRules(state *agentapi.OwnerState) {
	here, people := a.cfg.Rules.Here()
	for i := range state.Apps {
		app, _ := a.cfg.Apps.Lookup(state.Apps[i].Name)
		if state.Apps[i].Here = here[app.ID]; state.Apps[i].Here == nil {
			state.Apps[i].Here = []string{}
		}
	}
	state.Here = people
	state.DarkSince = a.cfg.Rules.DarkSince()
	state.Users = a.usersOfState()
	state.AccessUntil = a.cfg.Rules.AccessUntil()
}

package localapi

import (
	"net/http"

	"porchlight/agent/agentapi"
)

// What listens on this computer, for the owner to choose from.

func (a *API) listening(*http.Request) (any, error) {
	return a.cfg.Listening.List(), nil
}

// look asks one listener for its title and icon: the owner has the list open.
func (a *API) look(r *http.Request, look agentapi.Look) (any, error) {
	return a.cfg.Listening.Look(r.Context(), look)
}

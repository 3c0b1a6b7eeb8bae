package localapi

import (
	"net/http"
)

// grants lists the remote clients that people let open apps in their name.
func (a *API) grants(w http.ResponseWriter, r *http.Request) error {
	all, err := a.cfg.People.ListGrants(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, all)
}

func (a *API) revokeGrant(w http.ResponseWriter, r *http.Request) error {
	closed, err := a.cfg.People.RevokeGrant(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, closed)
}

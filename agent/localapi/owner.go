package localapi

import (
	"net/http"

	"porchlight/agent/agentapi"
)

func (a *API) ownerState(w http.ResponseWriter, r *http.Request) error {
	state, err := a.state(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, state)
}

func (a *API) ownerAccount(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, http.StatusOK, a.cfg.Backend.Account())
}

func (a *API) ownerOutbox(w http.ResponseWriter, r *http.Request) error {
	mails, err := a.cfg.Backend.Outbox(r.Context())
	if err != nil {
		return err
	}
	if mails == nil {
		mails = []agentapi.Mail{}
	}
	return answer(w, http.StatusOK, mails)
}

func (a *API) approve(w http.ResponseWriter, r *http.Request) error {
	pub, err := a.cfg.Apps.Approve(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, pub)
}

func (a *API) deny(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Apps.Deny(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

func (a *API) stop(w http.ResponseWriter, r *http.Request) error {
	closed, err := a.cfg.Apps.Stop(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, closed)
}

func (a *API) revoke(w http.ResponseWriter, r *http.Request) error {
	closed, err := a.cfg.Apps.Revoke(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, closed)
}

func (a *API) open(w http.ResponseWriter, r *http.Request) error {
	link, err := a.cfg.Backend.OpenLink(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, link)
}

func (a *API) unmute(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Apps.Unmute(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

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

// approve takes an optional body, agentapi.Seen.
func (a *API) approve(w http.ResponseWriter, r *http.Request) error {
	seen, err := readSeen(r)
	if err != nil {
		return err
	}
	pub, err := a.cfg.Apps.ApproveSeen(r.Context(), r.PathValue("name"), seen)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, pub)
}

func readSeen(r *http.Request) (*agentapi.Seen, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	f, err := readFields(r, "label", "localPort")
	if err != nil {
		return nil, err
	}
	var seen agentapi.Seen
	if seen.Label, err = f.text("label"); err != nil {
		return nil, err
	}
	if seen.LocalPort, err = f.integer("localPort"); err != nil {
		return nil, err
	}
	return &seen, nil
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

// open makes the link of an app, and where the route names none, of the launcher.
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

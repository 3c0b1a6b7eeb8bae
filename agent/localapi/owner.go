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

// approve takes an optional body.
func (a *API) approve(w http.ResponseWriter, r *http.Request) error {
	how, err := readApproval(r)
	if err != nil {
		return err
	}
	pub, err := a.cfg.Apps.ApproveAs(r.Context(), r.PathValue("name"), how)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, pub)
}

func readApproval(r *http.Request) (how agentapi.Approval, err error) {
	if r.ContentLength == 0 {
		return how, nil
	}
	f, err := readFields(r, "label", "localPort", "program", "user", "alone")
	if err != nil {
		return how, err
	}
	if f["alone"] != nil {
		if how.Alone, err = f.truth("alone"); err != nil {
			return how, err
		}
		if len(f) == 1 {
			return how, nil
		}
	}
	how.Seen, err = readSeen(f)
	return how, err
}

// readSeen wants label and port; older clients send no more.
func readSeen(f fields) (*agentapi.Seen, error) {
	var seen agentapi.Seen
	var err error
	if seen.Label, err = f.text("label"); err != nil {
		return nil, err
	}
	if seen.LocalPort, err = f.integer("localPort"); err != nil {
		return nil, err
	}
	for name, to := range map[string]**string{"program": &seen.Program, "user": &seen.User} {
		if f[name] == nil {
			continue
		}
		text, err := f.text(name)
		if err != nil {
			return nil, err
		}
		*to = &text
	}
	return &seen, nil
}

func (a *API) deny(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Apps.Deny(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
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

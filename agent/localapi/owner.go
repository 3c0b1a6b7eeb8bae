package localapi

import (
	"context"
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
	return answer(w, http.StatusOK, a.cfg.Link().Account)
}

func (a *API) ownerOutbox(w http.ResponseWriter, r *http.Request) error {
	mails, err := a.outbox(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, append([]agentapi.Mail{}, mails...))
}

func (a *API) outbox(ctx context.Context) ([]agentapi.Mail, error) {
	if a.cfg.Outbox == nil {
		return nil, nil
	}
	return a.cfg.Outbox(ctx)
}

// outboxSize is for the owner's state, which an outbox that fails does not keep back.
func (a *API) outboxSize(ctx context.Context) (size int) {
	var err error
	if a.cfg.OutboxSize != nil {
		size, err = a.cfg.OutboxSize(ctx)
	} else {
		var mails []agentapi.Mail
		mails, err = a.outbox(ctx)
		size = len(mails)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("cannot read the outbox", "err", err)
	}
	return size
}

// approve takes an optional body.
func (a *API) approve(w http.ResponseWriter, r *http.Request) error {
	how, err := readApproval(r)
	if err != nil {
		return err
	}
	pub, err := a.cfg.Apps.Approve(r.Context(), r.PathValue("name"), how)
	if err != nil {
		return err
	}
	a.announce(r.Context(), pub)
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
	name := r.PathValue("name")
	if name != "" {
		if err := a.cfg.Apps.Opens(name); err != nil {
			return err
		}
	}
	switch link := a.cfg.Link(); {
	case a.cfg.Access.DarkSince() != nil:
		return agentapi.Errorf(agentapi.CodeConflict, "You have closed everything. Open it again first.")
	case !link.Account.Connected && link.Trouble != "":
		return agentapi.Errorf(agentapi.CodeUnavailable, "%s", link.Trouble)
	case !link.Account.Connected:
		return agentapi.Errorf(agentapi.CodeUnavailable, "Porchlight is still connecting. Try again in a moment.")
	}
	url, expires, err := a.cfg.MakeLink(name)
	if err != nil {
		return agentapi.Errorf(agentapi.CodeUnavailable, "%s.", err)
	}
	return answer(w, http.StatusOK, agentapi.OpenLink{URL: url, ExpiresAt: expires})
}

func (a *API) unmute(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Apps.Unmute(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

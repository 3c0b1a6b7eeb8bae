package web

import (
	"net/http"

	"porchlight/control/controlapi"
)

// Who may reach a computer, for that computer's agent. The device tier has
// established whose computer it is, and it is the only one these routes can
// name: a member's session or token has no way in.

func (h *handler) people(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	members, err := h.svc.People.List(r.Context(), c.ID)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, controlapi.People{Name: c.Name, Members: members})
	return nil
}

func (h *handler) invite(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	var body controlapi.Invite
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	p, err := h.svc.People.Invite(r.Context(), c.ID, body.Email, body.Apps)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, p)
	return nil
}

func (h *handler) grant(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	var body controlapi.Grant
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	change := h.svc.People.Withdraw
	if body.Granted {
		change = h.svc.People.Give
	}
	p, err := change(r.Context(), c.ID, body.AccountID, body.App)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, p)
	return nil
}

func (h *handler) revoke(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	var body controlapi.Revoke
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	p, err := h.svc.People.Remove(r.Context(), c.ID, body.AccountID)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, p)
	return nil
}

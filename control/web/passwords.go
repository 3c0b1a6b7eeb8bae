package web

import (
	"net/http"

	"porchlight/control/controlapi"
)

// App passwords, as a computer's agent asks for its owner. The device tier has
// established whose computer it is; a password that is made here is the owner's
// own.

func (h *handler) listPasswords(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	list, err := h.svc.Passwords.OfComputer(r.Context(), c.ID)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, controlapi.Passwords{Passwords: list})
	return nil
}

func (h *handler) makeOwnersPassword(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	var body controlapi.MakePassword
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	made, err := h.svc.Passwords.MakeForOwner(r.Context(), c.ID, body.App, body.Name)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, made)
	return nil
}

func (h *handler) endPassword(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	var body controlapi.RevokePassword
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	if err := h.svc.Passwords.RevokeForComputer(r.Context(), c.ID, body.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

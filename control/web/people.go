package web

import (
	"net/http"

	"porchlight/control/controlapi"
)

// Who may reach a computer, for that computer's agent, and by which grants and app
// passwords. The device tier has established whose computer it is, and it is the only one
// these routes can name: a member's session or token has no way in.

func (h *handler) people(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	members, err := h.svc.People.List(r.Context(), c.ID)
	return reply(w, controlapi.People{Name: c.Name, Members: members}, err)
}

func (h *handler) listGrants(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	grants, err := h.svc.Grants.OfComputer(r.Context(), c.ID)
	return reply(w, controlapi.Grants{Grants: grants}, err)
}

func (h *handler) listPasswords(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	list, err := h.svc.Passwords.OfComputer(r.Context(), c.ID)
	return reply(w, controlapi.Passwords{Passwords: list}, err)
}

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
	p, err := h.svc.People.Invite(r.Context(), c.ID, body)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, p)
	return nil
}

func (h *handler) inviteAll(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	var body controlapi.Invitations
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	made, err := h.svc.People.InviteAll(r.Context(), c.ID, body)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, made)
	return nil
}

func (h *handler) invitationLink(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	var body controlapi.LinkWanted
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	link, err := h.svc.People.Link(r.Context(), c.ID, body.AccountID)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, link)
	return nil
}

func (h *handler) setAccess(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	var body controlapi.SetAccess
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	var p controlapi.Person
	var err error
	switch {
	case body.Granted && body.Program:
		p, err = h.svc.People.GiveByProgram(r.Context(), c.ID, body.AccountID, body.App)
	case body.Granted:
		p, err = h.svc.People.Give(r.Context(), c.ID, body.AccountID, body.App, body.Until)
	case body.Program:
		p, err = h.svc.People.WithdrawByProgram(r.Context(), c.ID, body.AccountID, body.App)
	default:
		p, err = h.svc.People.Withdraw(r.Context(), c.ID, body.AccountID, body.App)
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, p)
	return nil
}

func (h *handler) removePerson(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	var body controlapi.Remove
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	remove := h.svc.People.Remove
	switch {
	case body.Program:
		remove = h.svc.People.RemoveByProgram
	case body.Undo:
		remove = h.svc.People.Undo
	}
	p, err := remove(r.Context(), c.ID, body.AccountID)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, p)
	return nil
}

func (h *handler) answerKnock(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	var body controlapi.AnswerKnock
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	p, err := h.svc.Knocks.Answer(r.Context(), c.ID, body)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, p)
	return nil
}

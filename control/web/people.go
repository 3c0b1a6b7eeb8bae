package web

import (
	"net/http"
	"unicode"
	"unicode/utf8"

	"porchlight/control"
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
	if body.Granted {
		p, err = h.svc.People.Give(r.Context(), c.ID, body.AccountID, body.App, body.Until)
	} else {
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
	p, err := h.svc.People.Remove(r.Context(), c.ID, body.AccountID)
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

// invitationForm looks at an invitation and changes nothing: mail scanners come
// here, too.
func (h *handler) invitationForm(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	i, err := h.svc.People.LookAtInvitation(r.Context(), token, cookie(r, h.session))
	if err != nil {
		return h.invitationError(w, r, err)
	}
	return h.show(w, r, http.StatusOK, "invitation", page{
		Title: "An invitation from " + i.Owner, Token: token, Email: i.Email,
		Owner: i.Owner, Apps: invitedRows(i.Apps), Other: i.Other, Until: i.Until.UTC().Format("2 January"),
		// Any of that computer's: by the time of the click another app may be the
		// first, or none.
		formTarget: "https://" + i.Root + " https://*." + i.Root,
	})
}

func invitedRows(apps []control.InvitedApp) []invitedRow {
	rows := make([]invitedRow, len(apps))
	for n, a := range apps {
		initial, _ := utf8.DecodeRuneInString(a.Label)
		rows[n] = invitedRow{Label: a.Label, Initial: string(unicode.ToUpper(initial)), Host: a.Host}
	}
	return rows
}

// invitationAccept is the one click: it signs in, accepts, and leads to the app.
func (h *handler) invitationAccept(w http.ResponseWriter, r *http.Request) error {
	f, err := form(w, r)
	if err != nil {
		return err
	}
	accepted, err := h.svc.People.AcceptInvitation(r.Context(), f.Get("token"), cookie(r, h.session), clientAddr(r))
	if err != nil {
		return h.invitationError(w, r, err)
	}
	if accepted.Token != "" {
		setCookie(w, h.session, accepted.Token, control.SessionLife)
		dropCookie(w, h.signIn)
	}
	return seeOther(w, r, "https://"+accepted.Host+"/")
}

func (h *handler) invitationError(w http.ResponseWriter, r *http.Request, err error) error {
	if !control.IsRefusal(err, controlapi.CodeNotFound) {
		return err
	}
	return h.show(w, r, http.StatusNotFound, "error", page{
		Title: "This invitation is over", Problem: err.Error(), Status: http.StatusNotFound, Again: "/signin",
	})
}

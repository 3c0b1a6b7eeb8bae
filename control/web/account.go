package web

import (
	"net/http"

	"porchlight/control"
	"porchlight/control/controlapi"
)

func (h *handler) home(w http.ResponseWriter, r *http.Request) error {
	return seeOther(w, r, "/account")
}

func (h *handler) about(w http.ResponseWriter, _ *http.Request) error {
	return h.show(w, http.StatusOK, "about", page{Title: "What this is"})
}

// account shows what somebody can open and where they are signed in.
func (h *handler) account(w http.ResponseWriter, r *http.Request) error {
	session, ok, err := h.current(w, r)
	if err != nil {
		return err
	}
	if !ok {
		return seeOther(w, r, signInPath("/signin", destination{path: "/account"}))
	}
	p := page{Title: "Your account", Wide: true, Email: session.Account.Email}
	memberships, err := h.svc.Memberships(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		switch {
		case m.Role == controlapi.RoleOwner:
			p.Own = append(p.Own, m.Computer)
		case m.Status == controlapi.PersonActive:
			p.Shared = append(p.Shared, m.Computer)
		}
	}
	grants, err := h.svc.AccountGrants(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	p.Grants = grantRows(grants)
	sessions, err := h.svc.Sessions(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		row := sessionRow{This: s.ID == session.ID, Since: s.CreatedAt.UTC().Format("2 January 2006, 15:04 UTC")}
		if s.Client.IsValid() {
			row.Client = s.Client.String()
		}
		p.Sessions = append(p.Sessions, row)
	}
	return h.show(w, http.StatusOK, "account", p)
}

// visit is where an agent sends a browser without a session: to the sign-in
// page, to the app with a code, or to the page that says no.
func (h *handler) visit(w http.ResponseWriter, r *http.Request) error {
	v, err := h.svc.ParseVisit(r.URL.RawQuery)
	if err != nil {
		return err
	}
	here := destination{path: controlapi.PathVisit + "?" + r.URL.RawQuery, host: v.Host, leads: v.Origin()}
	session, ok, err := h.visiting(w, r, v.Computer)
	if err != nil {
		return err
	}
	if !ok {
		return seeOther(w, r, signInPath("/signin", here))
	}
	to, err := h.svc.Visit(r.Context(), v, session.Account)
	if control.IsRefusal(err, controlapi.CodeForbidden) {
		return h.show(w, http.StatusForbidden, "no-access", page{
			Title: "No access", Email: session.Account.Email, Host: v.Host, Return: here.path,
		})
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, to)
}

package web

import (
	"net/http"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// visit is where an agent sends a browser without a session: to the sign-in
// page, to the app with a code, or to the page that says no.
func (h *handler) visit(w http.ResponseWriter, r *http.Request) error {
	v, err := h.svc.Visits.Parse(r.URL.RawQuery)
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
	to, err := h.svc.Visits.Begin(r.Context(), v, session.Account)
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

package web

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/noaccess"
)

// What somebody sees who is signed in and may not open what they asked for: that it
// is not theirs, and once they asked the owner, a page that waits.

// knockRow is what the page that waits shows.
type knockRow struct {
	Stage control.KnockStage
	Owner string // short name of the computer
	Apps  string // where they see what they can open
	Hours int    // since they asked
	// Fields are those of a form about the same door.
	Fields []noaccess.Field
}

// knockForm is the page of a knock: where the agent's own page leads, and where
// somebody waits. It changes nothing.
func (h *handler) knockForm(w http.ResponseWriter, r *http.Request, d control.Door, session control.Session) error {
	return h.showDoor(w, r, http.StatusOK, toDoor(d), d, session)
}

// knockAsk knocks. What comes of it, the page says.
func (h *handler) knockAsk(w http.ResponseWriter, r *http.Request, d control.Door, session control.Session) error {
	err := h.svc.Knocks.Ask(r.Context(), d, session)
	if err != nil && !control.IsRefusal(err, controlapi.CodeForbidden) && !control.IsRefusal(err, controlapi.CodeTooMany) {
		return err
	}
	return seeOther(w, r, knockPath(d)) // where a refusal is told, too
}

// knockAccept takes the invitation that the owner's yes was.
func (h *handler) knockAccept(w http.ResponseWriter, r *http.Request, d control.Door, session control.Session) error {
	err := h.svc.Knocks.Accept(r.Context(), d, session)
	if control.IsRefusal(err, controlapi.CodeNotFound) {
		return seeOther(w, r, knockPath(d))
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, d.URL())
}

// atDoor serves whoever is signed in at the door that a form, or an address, names.
func (h *handler) atDoor(serve func(http.ResponseWriter, *http.Request, control.Door, control.Session) error) func(http.ResponseWriter, *http.Request, url.Values) error {
	return func(w http.ResponseWriter, r *http.Request, fields url.Values) error {
		d, err := h.svc.Knocks.ParseDoor(fields)
		if err != nil {
			return err
		}
		session, ok, err := h.visiting(w, r, d.Computer)
		if err != nil {
			return err
		}
		if !ok {
			return seeOther(w, r, signInPath("/signin", toDoor(d)))
		}
		return serve(w, r, d, session)
	}
}

func knockPath(d control.Door) string { return controlapi.PathKnock + "?" + d.Query() }

func toDoor(d control.Door) destination {
	return destination{path: knockPath(d), host: d.Host, leads: "https://" + d.Host}
}

// showDoor says how somebody stands at a door. Signed in with another address they come
// back to here.
func (h *handler) showDoor(w http.ResponseWriter, r *http.Request, status int, here destination, d control.Door, session control.Session) error {
	standing, err := h.svc.Knocks.Look(r.Context(), d, session)
	if err != nil {
		return err
	}
	p := page{Email: session.Account.Email, Host: d.Host, Return: here.path}
	p.Knock = knockRow{
		Stage: standing.Stage, Owner: d.Computer, Apps: h.whatOpens(d, session), Hours: max(1, int(standing.Waited/time.Hour)), Fields: doorFields(d),
	}
	switch standing.Stage {
	case control.KnockOpen:
		return seeOther(w, r, d.URL())
	case control.KnockPending:
		if standing.Invitation != "" {
			return seeOther(w, r, standing.Invitation)
		}
		p.Title = languageOf(r).Say("You are invited")
	case control.KnockInvited:
		p.Title, p.formTarget = languageOf(r).Say("%s lets you in", d.Computer), "https://"+d.Host
	case control.KnockWaiting:
		p.Title, p.Refresh = languageOf(r).Say("%s has been asked", d.Computer), fmt.Sprintf("%d; url=%s", lookAgainIn(standing.Waited), knockPath(d))
	case control.KnockUnanswered:
		p.Title = languageOf(r).Say("No answer so far")
	default:
		p.Title, p.NoAccess = languageOf(r).Say("This isn’t shared with you"), h.noAccess(standing.Stage, d, p)
		return h.show(w, r, http.StatusForbidden, "no-access", p)
	}
	return h.show(w, r, status, "knock", p)
}

func (h *handler) noAccess(stage control.KnockStage, d control.Door, p page) noaccess.Page {
	out := noaccess.Page{
		Email: p.Email, Host: p.Host, Owner: d.Computer, Spent: stage == control.KnockSpent, Apps: p.Knock.Apps,
		SignOut: noaccess.Form{Method: "post", Action: "/signout", Fields: []noaccess.Field{{Name: "return", Value: p.Return}}},
	}
	if stage == control.KnockAsk {
		out.Ask = &noaccess.Form{Method: "post", Action: controlapi.PathKnock, Fields: doorFields(d)}
	}
	return out
}

func doorFields(d control.Door) []noaccess.Field {
	return []noaccess.Field{{Name: controlapi.ParamComputer, Value: d.Computer}, {Name: controlapi.ParamApp, Value: d.App}, {Name: controlapi.ParamHost, Value: d.Host}}
}

// whatOpens is where somebody sees what they can open: their account, or for a session
// that is good for one computer, that computer's launcher.
func (h *handler) whatOpens(d control.Door, session control.Session) string {
	if session.Limited {
		return "https://" + d.Computer + h.svc.HostSuffix() + "/"
	}
	return "/account"
}

// lookAgainIn is when the page that waits loads itself again, in seconds: slower the
// longer it waits.
func lookAgainIn(waited time.Duration) int {
	switch {
	case waited < time.Minute:
		return 3
	case waited < 5*time.Minute:
		return 8
	case waited < 20*time.Minute:
		return 20
	}
	return 30
}

package localapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"porchlight/agent/agentapi"
	"porchlight/agent/people"
)

// Who may reach this computer, for programs that registered (docs/interface.md,
// People) and for the owner. Both tiers ask the same of people; it differs who is
// named as having done it.

func (a *API) listed(w http.ResponseWriter, r *http.Request) error {
	return listPeople(w, r, a.cfg.People.List)
}

// ownerPeople also answers with the control plane away.
func (a *API) ownerPeople(w http.ResponseWriter, r *http.Request) error {
	return listPeople(w, r, a.cfg.People.ListKnown)
}

func listPeople(w http.ResponseWriter, r *http.Request, list func(context.Context) (agentapi.People, error)) error {
	all, err := list(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, all)
}

// byProgram and byOwner make the handlers of the two tiers.
func byProgram(serve func(*API, http.ResponseWriter, *http.Request, people.Actor) error) handler {
	return func(a *API, w http.ResponseWriter, r *http.Request) error {
		by := a.actor(r)
		if err := a.slowChange(by); err != nil {
			return err
		}
		return serve(a, w, r, by)
	}
}

func byOwner(serve func(*API, http.ResponseWriter, *http.Request, people.Actor) error) handler {
	return func(a *API, w http.ResponseWriter, r *http.Request) error { return serve(a, w, r, people.Owner) }
}

func (a *API) invite(w http.ResponseWriter, r *http.Request, by people.Actor) error {
	f, err := readFields(r, "email", "apps")
	if err != nil {
		return err
	}
	var req agentapi.InviteRequest
	if req.Email, err = f.text("email"); err != nil {
		return err
	}
	if req.Apps, err = f.texts("apps"); err != nil {
		return err
	}
	invitation, err := a.cfg.People.Invite(r.Context(), by, req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, invitation)
}

func (a *API) grant(w http.ResponseWriter, r *http.Request, by people.Actor) error {
	f, err := readFields(r, "accountId", "app", "granted", "holdSeconds")
	if err != nil {
		return err
	}
	var req agentapi.GrantRequest
	if req.AccountID, err = f.text("accountId"); err != nil {
		return err
	}
	if req.App, err = f.text("app"); err != nil {
		return err
	}
	if req.Granted, err = f.truth("granted"); err != nil {
		return err
	}
	if req.HoldSeconds, err = heldFor(f, by); err != nil {
		return err
	}
	if by == people.Owner && req.Granted {
		if err := a.isOwner(r); err != nil { // only taking away is for whoever came this far
			return err
		}
	}
	changed, err := a.cfg.People.Grant(r.Context(), by, req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, changed)
}

func (a *API) remove(w http.ResponseWriter, r *http.Request, by people.Actor) error {
	f, err := readFields(r, "accountId", "holdSeconds")
	if err != nil {
		return err
	}
	var req agentapi.RevokeRequest
	if req.AccountID, err = f.text("accountId"); err != nil {
		return err
	}
	if req.HoldSeconds, err = heldFor(f, by); err != nil {
		return err
	}
	changed, err := a.cfg.People.Revoke(r.Context(), by, req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, changed)
}

// undo takes back what a notice tells of.
func (a *API) undo(w http.ResponseWriter, r *http.Request) error {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err != nil {
		return nothingHere()
	}
	if err := a.cfg.People.Undo(r.Context(), id); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

// actor names the program that sent r, as far as the system tells: by its
// executable first, for it chooses by itself what it registers as, and then by the
// label of its app, or that.
func (a *API) actor(r *http.Request) people.Actor {
	process := callerSocket(r).Find(a.pidsOf("")...)
	appID := a.server.registry.AppOf(process.PID)
	by := people.Actor{Name: process.Program, Program: process.Program}
	if process.PID != 0 {
		by.Process = fmt.Sprintf("%d %s", process.PID, process.Program)
	}
	switch {
	case by.Name != "":
	case a.callerOf(r).UserID != "":
		by.Name = "A program of the user " + process.User
	default:
		by.Name = "A program"
	}
	if label := a.cfg.Apps.LabelOf(process.PID, process.Program); label != "" {
		by.Name += " (the app " + label + ")"
	} else if appID != "" {
		by.Name += " (registered as " + appID + ")"
	}
	if appID != "" {
		by.Program += " (" + appID + ")"
	}
	return by
}

// see notes that the owner has looked at the notices up to one.
func (a *API) see(w http.ResponseWriter, r *http.Request) error {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err != nil {
		return nothingHere()
	}
	if err := a.cfg.Apps.SeeNotices(id); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

// addPeople fills in what the owner's state says of people and their clients, and
// of each app who may open it, who has it open and under which certificate. It waits
// for nobody.
func (a *API) addPeople(state *agentapi.OwnerState) {
	view := a.cfg.People.View()
	state.PeopleVersion, state.PeopleCount = view.Version, view.Count
	state.Undelivered = append([]string{}, view.Undelivered...)
	state.Grants = a.cfg.People.Grants()
	here, people := a.cfg.Access.Here()
	state.Here = people
	for i := range state.Apps {
		out := &state.Apps[i]
		app, _ := a.cfg.Apps.Lookup(out.Name)
		open := view.Open[app.ID]
		out.OpenToCount = open.Count
		out.OpenTo = append([]string{}, open.Names...)
		out.Here = append([]string{}, here[app.ID]...)
		if out.Status == agentapi.StatusLive && a.cfg.Certificate != nil {
			out.Certificate = a.cfg.Certificate(out.Name)
		}
	}
}

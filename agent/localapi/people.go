package localapi

import (
	"fmt"
	"net/http"

	"porchlight/agent/agentapi"
	"porchlight/agent/people"
	"porchlight/internal/words"
)

// Who may reach this computer, for programs that registered (docs/interface.md,
// People) and for the owner. Both tiers ask the same of people; it differs who is
// named as having done it.

func (a *API) listed(r *http.Request) (any, error) { return a.cfg.People.List(r.Context()) }

// ownerPeople also answers with the control plane away.
func (a *API) ownerPeople(r *http.Request) (any, error) { return a.cfg.People.ListKnown(r.Context()) }

// ownersAlone are fields that nobody knows in the request of a program: how long the owner
// wants a change held, and when a share ends.
var ownersAlone = []string{"until", "holdSeconds"}

// byProgram and byOwner make the handlers of the two tiers.
func byProgram[Body any](serve func(*API, *http.Request, people.Actor, Body) (any, error)) handler {
	return func(a *API, r *http.Request) (any, error) {
		var body Body
		if err := readBody(r, &body, ownersAlone...); err != nil {
			return nil, err
		}
		return serve(a, r, a.actor(r), body)
	}
}

func byOwner[Body any](serve func(*API, *http.Request, people.Actor, Body) (any, error)) handler {
	return with(func(a *API, r *http.Request, body Body) (any, error) { return serve(a, r, people.Owner, body) })
}

func (a *API) invite(r *http.Request, by people.Actor, req agentapi.InviteRequest) (any, error) {
	return a.paced(r, by, func() (any, error) { return a.cfg.People.Invite(r.Context(), by, req) })
}

// inviteAll invites several addresses, with what the owner writes to them. Programs
// have no such route: a line is the owner's own words.
func (a *API) inviteAll(r *http.Request, req agentapi.InvitationsRequest) (any, error) {
	return a.cfg.People.InviteAll(r.Context(), req)
}

func (a *API) invitationLink(r *http.Request, req agentapi.LinkRequest) (any, error) {
	return a.cfg.People.Link(r.Context(), req)
}

func (a *API) setAccess(r *http.Request, by people.Actor, req agentapi.AccessRequest) (any, error) {
	if by.Owner && req.Granted {
		if err := a.isOwner(r); err != nil { // the route is for taking away; giving needs the owner secret
			return nil, err
		}
	}
	change := func() (any, error) { return a.cfg.People.SetAccess(r.Context(), by, req) }
	if req.Granted {
		return a.paced(r, by, change)
	}
	return a.takes(r, by, req.AccountID, change)
}

func (a *API) remove(r *http.Request, by people.Actor, req agentapi.RemoveRequest) (any, error) {
	return a.takes(r, by, req.AccountID, func() (any, error) { return a.cfg.People.Remove(r.Context(), by, req) })
}

// undoHeld takes back what the owner took away a moment ago: the window's Undo.
func (a *API) undoHeld(r *http.Request) (any, error) {
	h, err := readHeld(r)
	if err == nil && h.AccountID == "" {
		err = invalid("The field \"accountId\" is missing.")
	}
	if err != nil {
		return nil, err
	}
	return a.cfg.People.TakeBack(h)
}

// settleHeld has what is held carried out now.
func (a *API) settleHeld(r *http.Request) (any, error) {
	h, err := readHeld(r)
	if err != nil {
		return nil, err
	}
	return done, a.cfg.People.Settle(r.Context(), h)
}

// readHeld reads which change is meant; fields that are not there are empty.
func readHeld(r *http.Request) (agentapi.HeldChange, error) {
	f := readFields(r, "accountId", "app")
	return agentapi.HeldChange{AccountID: f.optional("accountId"), App: f.optional("app")}, f.err
}

// visitors lists who has something open now, and disconnectVisitor closes what one of
// them has.
func (a *API) visitors(*http.Request) (any, error) { return a.cfg.People.Visitors(), nil }

func (a *API) disconnectVisitor(_ *http.Request, d agentapi.DisconnectRequest) (any, error) {
	return a.cfg.People.Disconnect(d)
}

// grants lists the remote clients that people let open apps in their name.
func (a *API) grants(r *http.Request) (any, error) { return a.cfg.People.ListGrants(r.Context()) }

func (a *API) revokeGrant(r *http.Request) (any, error) {
	return a.cfg.People.RevokeGrant(r.Context(), r.PathValue("id"))
}

// passwords lists everybody's app passwords; makePassword makes one for the owner.
func (a *API) passwords(r *http.Request) (any, error) { return a.cfg.People.ListPasswords(r.Context()) }

func (a *API) makePassword(r *http.Request, req agentapi.PasswordRequest) (any, error) {
	return a.cfg.People.MakePassword(r.Context(), req)
}

func (a *API) revokePassword(r *http.Request) (any, error) {
	return a.cfg.People.RevokePassword(r.Context(), r.PathValue("id"))
}

// actor names the program that sent r, as far as the system tells: by its
// executable first, for it chooses by itself what it registers as, and then by the
// label of its app, or that.
func (a *API) actor(r *http.Request) people.Actor {
	process := callerSocket(r).Find(a.pidsOf("")...)
	appID := a.server.registry.AppOf(process.PID)
	by := people.Actor{Program: process.Program}
	if process.PID != 0 {
		by.Process = fmt.Sprintf("%d %s", process.PID, process.Program)
	}
	switch {
	case process.Program != "":
		by.Name = words.Of("%s", process.Program)
	case a.callerOf(r).UserID != "":
		by.Name = words.Of("A program of the user %s", process.User)
	default:
		by.Name = words.Of("A program")
	}
	if label := a.cfg.Apps.LabelOf(process.PID, process.Program); label != "" {
		by.Name = words.Of("%[1]s (the app %[2]s)", by.Name, label)
	} else if appID != "" {
		by.Name = words.Of("%[1]s (registered as %[2]s)", by.Name, appID)
	}
	if appID != "" {
		by.Program += " (" + appID + ")"
	}
	return by
}

// addPeople fills in what the owner's state says of people and their clients, and
// of each app who may open it, who has it open and under which certificate. It waits
// for nobody.
func (a *API) addPeople(state *agentapi.OwnerState) {
	view := a.cfg.People.View()
	state.PeopleVersion, state.PeopleCount = view.Version, view.Count
	state.Undelivered = append([]string{}, view.Undelivered...)
	state.Grants = a.cfg.People.Grants()
	state.Knocks = a.cfg.People.Knocks()
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

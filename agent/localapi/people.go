package localapi

import (
	"context"
	"fmt"
	"net/http"

	"porchlight/agent/agentapi"
	"porchlight/agent/people"
	"porchlight/internal/words"
)

// Who may reach this computer, for programs that registered (docs/interface.md,
// People) and for the owner. Both tiers ask the same of people; it differs who is
// named as having done it.

// ofPeople, ofID and withPeople make the handlers of what people answers by itself: for
// nothing more, for an id, and for a body.
func ofPeople[T any](ask func(*people.People, context.Context) (T, error)) handler {
	return func(a *API, r *http.Request) (any, error) { return ask(a.cfg.People, r.Context()) }
}

func ofID[T any](do func(*people.People, context.Context, string) (T, error)) handler {
	return func(a *API, r *http.Request) (any, error) { return do(a.cfg.People, r.Context(), r.PathValue("id")) }
}

func ofDomain[T any](do func(*people.People, context.Context, string) (T, error)) handler {
	return func(a *API, r *http.Request) (any, error) { return do(a.cfg.People, r.Context(), r.PathValue("name")) }
}

func withPeople[Body, T any](do func(*people.People, context.Context, Body) (T, error)) handler {
	return with(func(a *API, r *http.Request, body Body) (any, error) { return do(a.cfg.People, r.Context(), body) })
}

// withGroup makes the handler of what changes a group, by a body.
func withGroup[Body any](do func(*people.People, context.Context, string, Body) (agentapi.GroupChanged, error)) handler {
	return with(func(a *API, r *http.Request, body Body) (any, error) {
		return do(a.cfg.People, r.Context(), r.PathValue("id"), body)
	})
}

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
// of each app who may open it, who has it open, how often it is and under which certificate. It waits
// for nobody.
func (a *API) addPeople(state *agentapi.OwnerState) {
	view := a.cfg.People.View()
	state.PeopleVersion, state.PeopleCount = view.Version, view.Count
	state.Groups = a.cfg.People.Groups()
	state.Undelivered = append([]string{}, view.Undelivered...)
	state.Grants = a.cfg.People.Grants()
	state.Knocks = a.cfg.People.Knocks()
	here, visitors := a.cfg.People.Here()
	state.Here = visitors
	visits := a.cfg.Activity.Visits()
	for i := range state.Apps {
		out := &state.Apps[i]
		out.Visits = visits[out.Label]
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

package engine

import (
	"context"
	"strings"

	"golang.org/x/net/http/httpguts"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// What the owner decides about an app that is approved already: whether its door
// is open, and how the proxy speaks to it. The interface knows only pending and
// live: a paused app stays live for itself, and stopping or publishing again
// does not open what the owner paused.

// Pause closes an approved app to everybody and keeps its approval, its people
// and its state. It answers what it closed.
func (a *Apps) Pause(ctx context.Context, name string) (agentapi.Closed, error) {
	return a.end(ctx, name, Pause)
}

// Resume takes a Pause back. Resuming what is not paused is no error.
func (a *Apps) Resume(ctx context.Context, name string) error {
	_, err := a.apply(ctx, name, Event{Kind: Resume})
	return err
}

// SetOptions replaces the options of an approved app and returns them as kept.
func (a *Apps) SetOptions(ctx context.Context, name string, o agentapi.AppOptions) (agentapi.AppOptions, error) {
	return a.ChangeOptions(ctx, name, func(kept *agentapi.AppOptions) { *kept = o })
}

// ChangeOptions is SetOptions for some of them: of two changes at a time none is
// lost. change may be called more than once.
func (a *Apps) ChangeOptions(ctx context.Context, name string, change func(*agentapi.AppOptions)) (agentapi.AppOptions, error) {
	out, err := a.apply(ctx, name, Event{Kind: Choose, Change: change})
	if err != nil {
		return agentapi.AppOptions{}, err
	}
	return out.App.Options, nil
}

// door is the part of Next for an approved app in any state.
func door(now Row, e Event) (Outcome, error) {
	app := *now.App
	out := Outcome{Row: Row{App: &app, Denial: now.Denial}}
	switch e.Kind {
	case Pause:
		app.Paused = true
		out.Gone = app.ID // also when paused already: what slipped in is closed
	case Resume:
		app.Paused = false
	case Choose:
		e.Change(&app.Options)
		var err error
		if app.Options, err = cleanOptions(app.Options); err != nil {
			return Outcome{Row: now}, err
		}
	}
	return out, nil
}

// askAgain has an approved app wait for the owner because its port changed, or the
// user whose program listens there. The approval stays as it was until they answer:
// held is what it was given for.
func askAgain(now Row, held store.Approved, e Event) Outcome {
	app := *now.App
	if app.Status != agentapi.StatusPending {
		app.RequestedAt, app.Quiet = e.At, e.AskedLately
	}
	app.Status, app.Approved = agentapi.StatusPending, &held
	app.Quiet = quiet(now.Denial, e.At) || now.Denial == nil && app.Quiet
	app.Label, app.LocalPort, app.Listener, app.Asker = e.Label, e.Port, e.Listener, e.By.asker()
	held.OtherUser = otherUser(&app, e)
	out := Outcome{Row: Row{App: &app, Denial: now.Denial}}
	if now.App.Status == agentapi.StatusLive {
		out.Gone = app.ID
	}
	return out
}

// restored ends asking again without a yes: the app is stopped, as what it was
// approved for.
func restored(now Row, denial *store.Denial) Outcome {
	app := asApproved(now.App)
	app.Status, app.Quiet = agentapi.StatusRevoked, false
	return Outcome{Row: Row{App: app, Denial: denial}}
}

// approvedOf is what the approval of an approved app was given for.
func approvedOf(app *store.App) store.Approved {
	if app.Approved != nil {
		return *app.Approved
	}
	return store.Approved{Label: app.Label, LocalPort: app.LocalPort, Listener: app.Listener, Asker: app.Asker}
}

// asApproved is a copy of an app without what it has asked for since.
func asApproved(app *store.App) *store.App {
	held, was := approvedOf(app), *app
	was.Label, was.LocalPort, was.Listener, was.Asker, was.Approved = held.Label, held.LocalPort, held.Listener, held.Asker, nil
	return &was
}

// cleanOptions checks what the owner chose and fills in what follows from it.
func cleanOptions(o agentapi.AppOptions) (agentapi.AppOptions, error) {
	o.IdentityHeader = strings.TrimSpace(o.IdentityHeader)
	if o.IdentityHeader == "" {
		o.IdentityValue = ""
		return o, nil
	}
	switch {
	case len(o.IdentityHeader) > agentapi.MaxIdentityHeader || !httpguts.ValidHeaderFieldName(o.IdentityHeader):
		return o, agentapi.Errorf(agentapi.CodeInvalid,
			"%.80q cannot be the name of a header. Write it like X-Remote-User, in at most %d letters, digits and dashes.", o.IdentityHeader, agentapi.MaxIdentityHeader)
	case !agentapi.ValidIdentityHeader(o.IdentityHeader):
		return o, agentapi.Errorf(agentapi.CodeInvalid,
			"The header %s means something else already. Take the one the app reads who is signed in from, like X-Remote-User.", o.IdentityHeader)
	}
	switch o.IdentityValue {
	case "":
		o.IdentityValue = agentapi.IdentityEmail
	case agentapi.IdentityEmail, agentapi.IdentityID:
	default:
		return o, agentapi.Errorf(agentapi.CodeInvalid, "The identity header can carry %q or %q, and not %.80q.",
			agentapi.IdentityEmail, agentapi.IdentityID, o.IdentityValue)
	}
	return o, nil
}

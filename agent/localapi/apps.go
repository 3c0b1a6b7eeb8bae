package localapi

import (
	"context"
	"net/http"
	"os"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
)

// What the owner decides about one app.

// approve takes an optional body.
func (a *API) approve(r *http.Request) (any, error) {
	how, err := readApproval(r)
	if err != nil {
		return nil, err
	}
	how.PID = peer(r)
	how.Terminal = how.PID != 0 && how.PID != os.Getpid() // the menu bar's process is the agent's
	pub, err := a.cfg.Apps.Approve(r.Context(), r.PathValue("name"), how)
	if err != nil {
		return nil, err
	}
	a.announce(r.Context(), pub)
	return agentapi.Approved{Publication: pub, AppHealth: a.awaitHealth(r)}, nil
}

// readApproval wants label and port of what the owner has seen; older clients send
// no more.
func readApproval(r *http.Request) (how agentapi.Approval, err error) {
	if r.ContentLength == 0 {
		return how, nil
	}
	f := readFields(r, "label", "localPort", "program", "user", "tcp", "alone", "until")
	seen := len(f.raw)
	if f.has("alone") {
		how.Alone = f.truth("alone")
		seen--
	}
	if f.has("until") {
		how.Until = f.text("until")
		seen--
	}
	if seen == 0 && len(f.raw) > 0 {
		return how, f.err
	}
	how.Seen = &agentapi.Seen{Label: f.text("label"), LocalPort: f.integer("localPort")}
	if f.has("program") {
		how.Seen.Program = new(f.text("program"))
	}
	if f.has("user") {
		how.Seen.User = new(f.text("user"))
	}
	how.Seen.TCP = f.has("tcp") && f.truth("tcp")
	return how, f.err
}

// ofApp makes the handler of what the engine does with the app of a name.
func ofApp[T any](do func(*engine.Apps, context.Context, string) (T, error)) handler {
	return func(a *API, r *http.Request) (any, error) { return do(a.cfg.Apps, r.Context(), r.PathValue("name")) }
}

func (a *API) unmute(r *http.Request) (any, error) {
	return done, a.cfg.Apps.Unmute(r.Context(), r.PathValue("name"))
}

// resume opens a paused app again, also where it took itself off.
func (a *API) resume(r *http.Request) (any, error) {
	pub, err := a.cfg.Apps.Resume(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	a.announce(r.Context(), pub)
	return done, nil
}

// open makes the link of an app, and where the route names none, of the launcher.
func (a *API) open(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if name != "" {
		if err := a.cfg.Apps.Opens(name); err != nil {
			return nil, err
		}
	}
	switch connection := a.cfg.Connection(); {
	case a.cfg.Access.DarkSince() != nil:
		return nil, agentapi.Errorf(agentapi.CodeConflict, "You have closed everything. Open it again first.")
	case !connection.Account.Connected && connection.Trouble != "":
		return nil, agentapi.Errorf(agentapi.CodeUnavailable, "%s", connection.Trouble)
	case !connection.Account.Connected:
		return nil, agentapi.Errorf(agentapi.CodeUnavailable, "Porchlight is still connecting. Try again in a moment.")
	}
	url, expires, err := a.cfg.MakeLink(name)
	if err != nil {
		return nil, agentapi.Errorf(agentapi.CodeUnavailable, "%s.", err)
	}
	return agentapi.OpenLink{URL: url, ExpiresAt: expires}, nil
}

func (a *API) changeOptions(r *http.Request) (any, error) {
	change, err := readChange[agentapi.AppOptions](r, agentapi.Options)
	if err != nil {
		return nil, err
	}
	return a.cfg.Apps.ChangeOptions(r.Context(), r.PathValue("name"), change)
}

package localapi

import (
	"encoding/json"
	"net/http"
	"os"

	"porchlight/agent/agentapi"
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
	f := readFields(r, "label", "localPort", "program", "user", "alone")
	if f.has("alone") {
		if how.Alone = f.truth("alone"); len(f.raw) == 1 {
			return how, f.err
		}
	}
	how.Seen = &agentapi.Seen{Label: f.text("label"), LocalPort: f.integer("localPort")}
	if f.has("program") {
		how.Seen.Program = new(f.text("program"))
	}
	if f.has("user") {
		how.Seen.User = new(f.text("user"))
	}
	return how, f.err
}

func (a *API) deny(r *http.Request) (any, error) {
	return a.cfg.Apps.Deny(r.Context(), r.PathValue("name"))
}

func (a *API) revoke(r *http.Request) (any, error) {
	return a.cfg.Apps.Revoke(r.Context(), r.PathValue("name"))
}

func (a *API) unmute(r *http.Request) (any, error) {
	return done, a.cfg.Apps.Unmute(r.Context(), r.PathValue("name"))
}

// pause closes one app; resume opens it again, also where it took itself off.
func (a *API) pause(r *http.Request) (any, error) {
	return a.cfg.Apps.Pause(r.Context(), r.PathValue("name"))
}

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

// setOptions changes the options named and leaves the others: a client need not know
// all there are. PATCH is a merge patch (RFC 7396), in which null is the default.
func (a *API) setOptions(r *http.Request) (any, error) {
	change, err := readOptions(r)
	if err != nil {
		return nil, err
	}
	return a.cfg.Apps.ChangeOptions(r.Context(), r.PathValue("name"), change)
}

// readOptions returns what the body does to options. encoding/json leaves what is
// not there as it is; a default is written into the patch first.
func readOptions(r *http.Request) (func(*agentapi.AppOptions), error) {
	names := make([]string, len(agentapi.Options))
	for i, o := range agentapi.Options {
		names[i] = o.Name
	}
	f := readFields(r, names...)
	patch := map[string]any{}
	for _, o := range agentapi.Options {
		switch {
		case !f.has(o.Name):
		case string(f.raw[o.Name]) == "null" && r.Method == http.MethodPatch:
			patch[o.Name] = o.Default
		case o.Default == false:
			patch[o.Name] = f.truth(o.Name)
		case o.Default == 0:
			patch[o.Name] = f.integer(o.Name)
		default:
			patch[o.Name] = f.text(o.Name)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	merge, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return func(o *agentapi.AppOptions) { _ = json.Unmarshal(merge, o) }, nil // cannot fail: types are checked above
}

package localapi

import (
	"encoding/json"
	"net/http"

	"porchlight/agent/agentapi"
)

// pause closes one app; resume opens it again.
func (a *API) pause(w http.ResponseWriter, r *http.Request) error {
	closed, err := a.cfg.Apps.Pause(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, closed)
}

func (a *API) resume(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Apps.Resume(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

// setOptions changes the options named and leaves the others: a client need not know
// all there are. PATCH is a merge patch (RFC 7396), in which null is the default.
func (a *API) setOptions(w http.ResponseWriter, r *http.Request) error {
	change, err := readOptions(r)
	if err != nil {
		return err
	}
	o, err := a.cfg.Apps.ChangeOptions(r.Context(), r.PathValue("name"), change)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, o)
}

// readOptions returns what the body does to options. encoding/json leaves what is
// not there as it is; a default is written into the patch first.
func readOptions(r *http.Request) (func(*agentapi.AppOptions), error) {
	names := make([]string, len(agentapi.Options))
	for i, o := range agentapi.Options {
		names[i] = o.Name
	}
	f, err := readFields(r, names...)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	for _, o := range agentapi.Options {
		switch {
		case f[o.Name] == nil:
		case string(f[o.Name]) == "null" && r.Method == http.MethodPatch:
			patch[o.Name] = o.Default
		case o.Default == false:
			patch[o.Name], err = f.truth(o.Name)
		default:
			patch[o.Name], err = f.text(o.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	merge, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return func(o *agentapi.AppOptions) { _ = json.Unmarshal(merge, o) }, nil // cannot fail: types are checked above
}

// goDark closes everything; lightUp opens it again.
func (a *API) goDark(w http.ResponseWriter, _ *http.Request) error {
	closed, err := a.cfg.Access.GoDark()
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, closed)
}

func (a *API) lightUp(w http.ResponseWriter, _ *http.Request) error {
	if err := a.cfg.Access.LightUp(); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

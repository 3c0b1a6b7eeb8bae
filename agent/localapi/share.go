package localapi

import (
	"net/http"
	"os"
	"strconv"

	"porchlight/agent/agentapi"
)

// What the owner shares from a terminal.

func (a *API) port(r *http.Request) (any, error) {
	port, err := strconv.Atoi(r.PathValue("port"))
	if err != nil {
		return nil, nothingHere()
	}
	return a.cfg.Listening.Port(r.Context(), port, r.URL.Query().Get("folder"))
}

func (a *API) share(r *http.Request) (any, error) {
	f := readFields(r, "label", "localPort", "program", "user", "listening", "others", "keep")
	program, user := f.text("program"), f.text("user")
	s := agentapi.Share{Seen: agentapi.Seen{Label: f.text("label"), LocalPort: f.integer("localPort"), Program: &program, User: &user}}
	for name, set := range map[string]*bool{"listening": &s.Listening, "others": &s.Others, "keep": &s.Keep} {
		if f.has(name) {
			*set = f.truth(name)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	s.Menu = peer(r) == os.Getpid() // the menu bar's process is the agent's
	pub, err := a.cfg.Apps.Share(r.Context(), r.PathValue("name"), peer(r), s)
	if err != nil {
		return nil, err
	}
	a.announce(r.Context(), pub)
	return pub, nil
}

package localapi

import (
	"cmp"
	"net/http"
	"slices"

	"porchlight/agent/agentapi"
)

// assist says what to tell an assistant so that it can use an app.
func (a *API) assist(r *http.Request) (any, error) {
	apps := a.cfg.Apps.OwnerApps(nil)
	i := slices.IndexFunc(apps, func(app agentapi.OwnerApp) bool { return app.Name == r.PathValue("name") })
	if i < 0 {
		return nil, agentapi.NoApp()
	}
	if apps[i].TCP {
		return nil, agentapi.NotOverTCP(apps[i].Label)
	}
	path := cmp.Or(r.URL.Query().Get("path"), apps[i].Options.MCP, agentapi.DefaultAssistPath)
	return a.cfg.People.Assist(r.Context(), a.cfg.Connection().Account, apps[i], path)
}

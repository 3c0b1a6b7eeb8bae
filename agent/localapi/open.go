package localapi

import (
	"net/http"

	"porchlight/agent/agentapi"
)

// publish is POST /publish: 202 for a request that waits for the owner, 200 for
// an app that was approved before.
func (a *API) publish(w http.ResponseWriter, r *http.Request) error {
	f, err := readFields(r, "name", "label", "localPort")
	if err != nil {
		return err
	}
	var req agentapi.PublishRequest
	if req.Name, err = f.text("name"); err != nil {
		return err
	}
	if req.Label, err = f.text("label"); err != nil {
		return err
	}
	if req.LocalPort, err = f.integer("localPort"); err != nil {
		return err
	}
	pub, err := a.cfg.Apps.PublishBy(r.Context(), a.callerOf(r), req)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if pub.Status == agentapi.StatusPending {
		status = http.StatusAccepted
	}
	return answer(w, status, pub)
}

func (a *API) publication(w http.ResponseWriter, r *http.Request) error {
	pub, err := a.cfg.Apps.Get(r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, pub)
}

func (a *API) withdraw(w http.ResponseWriter, r *http.Request) error {
	pub, err := a.cfg.Apps.WithdrawBy(r.Context(), a.callerOf(r), r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, pub)
}

// status says which apps are live. Requests are counted and not named: they are
// the owner's business.
func (a *API) status(w http.ResponseWriter, _ *http.Request) error {
	account := a.cfg.Backend.Account()
	s := agentapi.StatusSummary{
		Connected: account.Connected,
		Host:      account.Host,
		Name:      account.Name,
		URL:       account.URL,
		Apps:      []agentapi.AppSummary{},
	}
	for _, app := range a.cfg.Apps.OwnerApps(nil) {
		switch app.Status {
		case agentapi.StatusPending:
			s.PendingApps++
		case agentapi.StatusLive:
			if app.Host == "" {
				continue // approved, and without an address yet
			}
			s.Apps = append(s.Apps, app.AppSummary)
		}
	}
	return answer(w, http.StatusOK, s)
}

func (a *API) engineInfo(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, http.StatusOK, a.cfg.Backend.Info())
}

package localapi

import (
	"context"
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
	pub, err := a.cfg.Apps.Publish(r.Context(), a.callerOf(r), req)
	if err != nil {
		return err
	}
	a.announce(r.Context(), pub)
	status := http.StatusOK
	if pub.Status == agentapi.StatusPending {
		status = http.StatusAccepted
	}
	return answer(w, status, pub)
}

// announce has the control plane know of an app that went live before its program
// does: a visitor who is quicker would be refused.
func (a *API) announce(ctx context.Context, pub agentapi.Publication) {
	if pub.Status == agentapi.StatusLive && a.cfg.Announce != nil {
		a.cfg.Announce(ctx)
	}
}

func (a *API) publication(w http.ResponseWriter, r *http.Request) error {
	pub, err := a.cfg.Apps.Get(r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, pub)
}

func (a *API) withdraw(w http.ResponseWriter, r *http.Request) error {
	pub, err := a.cfg.Apps.Withdraw(r.Context(), a.callerOf(r), r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, pub)
}

// status says which apps are live. Requests are counted and not named: they are
// the owner's business.
func (a *API) status(w http.ResponseWriter, _ *http.Request) error {
	account := a.cfg.Link().Account
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
	info, account := a.cfg.Info, a.cfg.Link().Account
	info.Connected, info.Host, info.Name = account.Connected, account.Host, account.Name
	info.Registrants = a.server.registry.Count()
	if billing := a.cfg.Access.Snapshot().Billing; billing.Plan != "" {
		info.Billing = agentapi.Billing{Plan: billing.Plan, Standing: billing.Standing}
	}
	return answer(w, http.StatusOK, info)
}

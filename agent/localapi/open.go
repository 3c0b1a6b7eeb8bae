package localapi

import (
	"context"
	"net/http"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
)

// publish is POST /publish: 202 for a request that waits for the owner, 200 for
// an app that was approved before.
func (a *API) publish(r *http.Request, req agentapi.PublishRequest) (any, error) {
	by := a.callerOf(r)
	by.Process = func() procinfo.Process { return a.asker(r) }
	pub, err := a.cfg.Apps.Publish(r.Context(), by, req)
	if err != nil {
		return nil, err
	}
	a.announce(r.Context(), pub)
	if pub.Status == agentapi.StatusPending {
		return accepted{pub}, nil
	}
	return pub, nil
}

// publishTCP asks for an app that programs reach over TCP, as the owner alone may.
func (a *API) publishTCP(r *http.Request, req agentapi.PublishTCP) (any, error) {
	pub, err := a.cfg.Apps.PublishTCP(r.Context(), r.PathValue("name"), req)
	if err == nil {
		a.announce(r.Context(), pub)
	}
	return pub, err
}

// askerFor is how long a request waits to have its program found.
const askerFor = 300 * time.Millisecond

// asker finds the program that sent r. It has to be found while r waits: a command ends
// with its answer.
func (a *API) asker(r *http.Request) procinfo.Process {
	from := callerSocket(r)
	found := make(chan procinfo.Process, 1)
	go func() { found <- from.Find(a.pidsOf("")...) }()
	select {
	case process := <-found:
		return process
	case <-time.After(askerFor):
		return procinfo.Process{User: from.User, UserID: from.UserID}
	}
}

// announce has the control plane know of an app that went live before its program
// does: a visitor who is quicker would be refused.
func (a *API) announce(ctx context.Context, pub agentapi.Publication) {
	if pub.Status == agentapi.StatusLive && a.cfg.Announce != nil {
		a.cfg.Announce(ctx)
	}
}

func (a *API) publication(r *http.Request) (any, error) {
	return a.cfg.Apps.Get(r.PathValue("name"))
}

func (a *API) unpublish(r *http.Request) (any, error) {
	return a.cfg.Apps.Unpublish(r.Context(), a.callerOf(r), r.PathValue("name"))
}

// status says which apps are live. Requests are counted and not named: they are
// the owner's business.
func (a *API) status(*http.Request) (any, error) {
	account := a.cfg.Connection().Account
	s := agentapi.StatusSummary{
		Connected: account.Connected,
		Host:      account.Host,
		Name:      account.Name,
		URL:       account.URL,
		Dark:      a.cfg.Access.DarkSince() != nil,
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
	return s, nil
}

func (a *API) engineInfo(*http.Request) (any, error) {
	info, account := a.cfg.Info, a.cfg.Connection().Account
	info.Connected, info.Host, info.Name = account.Connected, account.Host, account.Name
	info.Registrants = a.server.registry.Count()
	if billing := a.cfg.Access.Snapshot().Billing; billing.Plan != "" {
		info.Billing = agentapi.Billing{Plan: billing.Plan, Standing: billing.Standing}
	}
	return info, nil
}

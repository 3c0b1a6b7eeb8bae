package localapi

import (
	"context"
	"net/http"
	"time"

	"porchlight/agent/agentapi"
)

// TrustChecks are how an owner's browser is seen to trust this computer's authority.
type TrustChecks struct {
	Begin func() agentapi.TrustCheck
	// Await returns once the check stands otherwise than it was, or when ctx ends.
	Await func(ctx context.Context, was string) agentapi.TrustCheck
	// Browser names the owner's.
	Browser func(ctx context.Context) string
}

// beginTrustCheck makes the link to a page of this computer. Like the owner's own links
// it is of no use while nobody can open anything.
func (a *API) beginTrustCheck(r *http.Request) (any, error) {
	switch connection := a.cfg.Connection(); {
	case a.cfg.TrustChecks == nil || !connection.Account.Local:
		return nil, agentapi.Errorf(agentapi.CodeConflict, "This computer's certificates are public ones: every browser trusts them.")
	case a.cfg.Access.DarkSince() != nil:
		return nil, agentapi.Errorf(agentapi.CodeConflict, "You have closed everything. Open it again first.")
	case !connection.Account.Connected:
		return nil, agentapi.Errorf(agentapi.CodeUnavailable, "Porchlight is still starting. Try again in a moment.")
	}
	begun := a.cfg.TrustChecks.Begin()
	begun.Browser = a.cfg.TrustChecks.Browser(r.Context())
	return begun, nil
}

func (a *API) trustCheck(r *http.Request) (any, error) {
	wait, err := number(r.URL.Query(), "wait", agentapi.MaxWait)
	if err != nil {
		return nil, err
	}
	if a.cfg.TrustChecks == nil {
		return agentapi.TrustCheck{State: agentapi.CheckNone}, nil
	}
	ctx, stop := context.WithTimeout(r.Context(), time.Duration(wait)*time.Second)
	defer stop()
	go func() {
		select {
		case <-a.ending:
			stop()
		case <-ctx.Done():
		}
	}()
	now := a.cfg.TrustChecks.Await(ctx, r.URL.Query().Get("was"))
	now.Browser = a.cfg.TrustChecks.Browser(r.Context())
	return now, nil
}

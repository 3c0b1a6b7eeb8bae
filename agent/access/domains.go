package access

import (
	"context"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// Own domains. Which there are says the control plane, which looks into the DNS. A session
// is of the host it was made at, and one made at an own domain ends as soon as that is not
// this computer's any more, or another app's: whoever has the name next is sent its cookie
// by the browser, and must be able to do nothing with it.

// OwnDomain is the own domain of a name, if visitors are brought to it now.
func (a *Access) OwnDomain(name string) (controlapi.Domain, bool) {
	all := a.state.Load().domains
	if len(all) == 0 {
		return controlapi.Domain{}, false
	}
	d, found := all[name]
	now, _ := a.clock.time()
	return d, found && d.Routed(now)
}

// TakesTokens says whether access tokens are taken at a name: at an own domain not once its
// records are told to be gone. An empty name is one of the computer's.
func (a *Access) TakesTokens(own string) bool {
	if own == "" {
		return true
	}
	d, found := a.OwnDomain(own)
	return found && d.State != controlapi.DomainGone
}

// endLostDomains ends the sessions made at own domains that are not those of their apps any
// more, or were not for a while of which this computer heard nothing.
func (a *Access) endLostDomains(before, after *state) (closed int) {
	gone := func(name, appID string) bool {
		return name != "" && (!after.holds(name, appID) || !after.domains[name].Held.Equal(before.domains[name].Held))
	}
	lost := false
	for name, d := range before.domains {
		lost = lost || d.State != controlapi.DomainWaiting && gone(name, d.AppID)
	}
	if !lost {
		return 0
	}
	closed = a.endSessions(func(s store.Session) bool { return gone(s.Own, s.AppID) })
	return closed + a.live.close(func(c *Open) bool { return gone(c.id.Own, c.app) })
}

// holds says whether a name is an own domain of an app that visitors are brought to, and
// nobody else is sent what browsers keep for it, as far as the last snapshot says it.
func (st *state) holds(name, appID string) bool {
	d, found := st.domains[name]
	return found && d.AppID == appID && d.State != controlapi.DomainWaiting && !d.Astray()
}

// AwaitDomain returns once a snapshot has an own domain of a name, or has none; or when ctx
// ends.
func (a *Access) AwaitDomain(ctx context.Context, name string, there bool) {
	a.await(ctx, func(st *state) bool { _, is := st.domains[name]; return is == there })
}

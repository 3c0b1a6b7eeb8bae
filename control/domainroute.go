package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// Where visitors of an own domain are brought. Every node asks the store, and remembers the
// answer for a moment: whatever ends a domain at one node ends it at all within routeFor.
// While the store is away what was last known goes on for as long as routeStale, as tunnels
// do, and a name that was not asked for before leads nowhere.

const (
	routeFor = 2 * time.Second
	// nowhereFor is so short that who proved a name, and orders its certificate at once, is
	// found by the authority.
	nowhereFor = 250 * time.Millisecond
	routeStale = 10 * time.Minute
	// routeWithin bounds a look that a stranger causes by naming a host.
	routeWithin = time.Second
	// maxRoutes are remembered of either kind, and maxRouteLooks under way at once.
	maxRoutes     = 8192
	maxRouteLooks = 64
)

// DomainRoute is where a name leads.
type DomainRoute struct {
	ComputerID string
	Computer   string // short name
	AppID      string
	Host       string // of the app, without a port; empty where the name leads nowhere
	// Proven says that the last look found its records: only then is anybody signed in there.
	Proven bool
}

// domainRoutes keeps names that lead nowhere by themselves: anybody may name as many as they
// like, and none of them takes the place of one that leads somewhere.
type domainRoutes struct {
	mu      sync.Mutex
	known   map[string]knownRoute // guarded by mu, as is what follows
	nowhere map[string]knownRoute
	looks   int // under way
}

type knownRoute struct {
	DomainRoute
	at    time.Time
	until time.Time // when it ends by itself; zero for not
}

var errLooks = errors.New("control: too many names are looked up at once")

// Route is where a name that is none of the service's own leads; nowhere is no error.
func (s *Domains) Route(ctx context.Context, name string) (DomainRoute, error) {
	if s.looker == nil || len(name) > maxOwnName {
		return DomainRoute{}, nil
	}
	now := s.now()
	known, found := s.routes.find(name)
	if found && now.Sub(known.at).Abs() < known.lasts() {
		return known.as(now), nil
	}
	lasts := found && known.Host != "" && now.Sub(known.at).Abs() < routeStale
	if !s.routes.begin() {
		if lasts { // whoever names many hosts keeps nobody from one that is known
			return known.as(now), nil
		}
		return DomainRoute{}, errLooks
	}
	defer s.routes.end()
	looking, cancel := context.WithTimeout(kv.WithTurn(ctx, "domains"), routeWithin)
	defer cancel()
	fresh, err := s.readRoute(looking, name)
	switch {
	case err == nil:
		s.routes.keep(name, fresh)
		return fresh.as(now), nil
	case lasts:
		return known.as(now), nil
	}
	return DomainRoute{}, err
}

// lasts is how long a route is not looked up again.
func (k knownRoute) lasts() time.Duration {
	if k.Host == "" {
		return nowhereFor
	}
	return routeFor
}

// as is the route as it is at a moment.
func (k knownRoute) as(now time.Time) DomainRoute {
	if !k.until.IsZero() && !now.Before(k.until) {
		return DomainRoute{}
	}
	return k.DomainRoute
}

// readRoute reads where a name leads.
func (s *Domains) readRoute(ctx context.Context, name string) (knownRoute, error) {
	return viewedOf(ctx, s.core, kv.Rows{Keys: []string{keyDomain(name)}}, func(tx *txn) (knownRoute, error) {
		return knownRoute{DomainRoute: s.routeIn(tx, name), at: tx.now, until: s.routeEnds(tx, name)}, nil
	})
}

// routeIn is where a name leads, as a transaction sees it.
func (s *core) routeIn(tx *txn, name string) DomainRoute {
	holder, found := get[domainHolder](tx, keyDomain(name))
	if !found {
		return DomainRoute{}
	}
	tx.getAll(keyComputer(holder.ComputerID), keyComputerDomains(holder.ComputerID), keyComputerApps(holder.ComputerID))
	c, _ := get[computer](tx, keyComputer(holder.ComputerID))
	all, _ := get[[]domain](tx, keyComputerDomains(holder.ComputerID))
	apps, _ := get[[]controlapi.App](tx, keyComputerApps(holder.ComputerID))
	i := domainOf(all, name)
	if i < 0 || c.ID == "" || !all[i].routed(tx.now) {
		return DomainRoute{}
	}
	app, found := appOf(apps, all[i].AppID)
	if !found {
		return DomainRoute{}
	}
	return DomainRoute{
		ComputerID: c.ID, Computer: c.Name, AppID: app.ID, Host: app.Name + "." + c.Name + "." + s.cfg.Domain,
		Proven: all[i].State == controlapi.DomainProven,
	}
}

// provenIn says whether a name is proven now for an app of a computer: only there is a
// visitor's code written, and taken.
func (s *core) provenIn(tx *txn, name, computerID, appID string) bool {
	route := s.routeIn(tx, name)
	return route.Proven && route.ComputerID == computerID && route.AppID == appID
}

// routeEnds is when a route that is there ends unless another look prolongs it.
func (s *core) routeEnds(tx *txn, name string) time.Time {
	holder, _ := get[domainHolder](tx, keyDomain(name))
	all, _ := get[[]domain](tx, keyComputerDomains(holder.ComputerID))
	if i := domainOf(all, name); i >= 0 {
		return all[i].ends()
	}
	return time.Time{}
}

func (r *domainRoutes) find(name string) (knownRoute, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, found := r.known[name]; found {
		return k, true
	}
	k, found := r.nowhere[name]
	return k, found
}

// forget has a name be looked up anew, because this node has changed it.
func (r *domainRoutes) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, name)
	delete(r.nowhere, name)
}

// keep remembers a route, and forgets any others of its kind where there are too many.
func (r *domainRoutes) keep(name string, k knownRoute) {
	r.mu.Lock()
	defer r.mu.Unlock()
	into, from := &r.known, r.nowhere
	if k.Host == "" {
		into, from = &r.nowhere, r.known
	}
	delete(from, name)
	if *into == nil {
		*into = map[string]knownRoute{}
	}
	for other := range *into {
		if len(*into) < maxRoutes {
			break
		}
		delete(*into, other)
	}
	(*into)[name] = k
}

func (r *domainRoutes) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looks >= maxRouteLooks {
		return false
	}
	r.looks++
	return true
}

func (r *domainRoutes) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks--
}

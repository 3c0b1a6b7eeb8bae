package control

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"porchlight/control/controlapi"
)

// A client names what it wants to open by addresses (RFC 8707): an app's origin, or any
// address below it, means that app, and the root address of a computer all of its apps.

// Asked is what a client asks for, as one person may open it.
type Asked struct {
	Computer string   // short name; "" where the client does not say
	Apps     []string // ids, sorted; empty for all
}

// Asked resolves what a client asks an account for; ReachClient has to say. It refuses with CodeInvalidTarget
// what is no app, or not all on one computer; of what the account cannot open it says no
// more than of nothing.
func (s *Grants) Asked(ctx context.Context, accountID, clientID string, resources []string) (Asked, error) {
	if len(resources) == 0 && clientID != controlapi.ReachClient {
		return Asked{}, nil
	}
	return viewed(ctx, s.core, func(tx *txn) (Asked, error) {
		for computerID := range below(tx, keyMemberships(accountID)) {
			c, found := get[computer](tx, keyComputer(computerID))
			if !found {
				continue
			}
			if apps, all, ok := s.named(tx, c, accountID, clientID, resources); ok {
				if all {
					apps = nil
				}
				return Asked{c.Name, apps}, nil
			}
		}
		return Asked{}, noTarget()
	})
}

func noTarget() error {
	return refuse(controlapi.CodeInvalidTarget, whyNoTarget)
}

// whyNoTarget is also told of an app that is not for the client, and to one that names too many.
const whyNoTarget = "A resource is not the https address of an app that the person may open, or they are of several computers (RFC 8707)."

// named are the apps of a computer that resources name, sorted, and whether one names all
// of it. ok is false unless the account may open each of them.
func (s *core) named(tx *txn, c computer, accountID, clientID string, resources []string) (apps []string, all, ok bool) {
	if len(resources) > maxGrantApps || clientID == controlapi.ReachClient && len(resources) != 1 {
		return nil, false, false
	}
	p, _ := get[person](tx, keyPerson(c.ID, accountID))
	p = p.asOf(tx.now)
	if !p.mayOpen("") {
		return nil, false, false
	}
	reported, _ := get[[]controlapi.App](tx, keyComputerApps(c.ID))
	root := s.computer(c).Host
	for _, resource := range resources {
		host := hostOfResource(resource)
		if clientID != controlapi.ReachClient && (host == root || host == controlapi.Portal+"."+root) {
			all = true
			continue
		}
		name, below := strings.CutSuffix(host, "."+root)
		own := ""
		if !below {
			own = s.ownApp(tx, c, host)
		}
		i := slices.IndexFunc(reported, func(a controlapi.App) bool {
			return (below && a.Name == name || own != "" && a.ID == own) && p.mayOpen(a.ID) && isFor(a, clientID)
		})
		if i < 0 {
			return nil, false, false
		}
		apps = append(apps, reported[i].ID)
	}
	return withApps(nil, apps), all, true
}

// ownApp is the app of a computer at an own domain that is proven; "" for none.
func (s *core) ownApp(tx *txn, c computer, host string) (appID string) {
	name := controlapi.HostName(host)
	if name == "" || host != s.cfg.withPort(name) {
		return ""
	}
	if route := s.routeIn(tx, name); route.Proven && route.ComputerID == c.ID {
		return route.AppID
	}
	return ""
}

// hostOfResource is the host of an https address, with its port unless that is 443, and ""
// for anything else: no other spelling of a host than letters of either case is taken.
func hostOfResource(resource string) string {
	u, err := url.Parse(resource)
	if err != nil || u.Scheme != "https" || u.User != nil || strings.Contains(resource, "#") {
		return ""
	}
	for _, c := range []byte(u.Host) {
		if c >= 0x80 { // some of which have an ASCII letter for their lower case
			return ""
		}
	}
	return strings.TrimSuffix(strings.ToLower(u.Host), ":443")
}

// narrowed is what a grant, or code, for apps of which its client asked for some is for
// from now on, when the client names resources: no more than before, and no less either
// unless it leaves out one that it asked for, because the person may have added others.
func (s *core) narrowed(tx *txn, c computer, accountID, clientID string, apps, asked, resources []string) (_, _ []string, err error) {
	if len(resources) == 0 {
		return apps, asked, nil
	}
	named, all, ok := s.named(tx, c, accountID, clientID, resources)
	isIn := func(set []string) func(string) bool {
		return func(id string) bool { return slices.Contains(set, id) }
	}
	switch {
	case !ok || len(apps) > 0 && len(withoutApps(named, isIn(apps))) > 0:
		return nil, nil, noTarget()
	case all || len(asked) > 0 && len(withoutApps(asked, isIn(named))) == 0:
		return apps, asked, nil
	}
	if len(apps) == 0 {
		if tx.roomForApps(c.ID, named) != nil {
			return nil, nil, noTarget()
		}
	}
	return named, named, nil
}

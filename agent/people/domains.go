package people

import (
	"context"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Own domains: another address of an app, where the same people come in. The control plane
// looks whether a name leads here; the last snapshot says so (access.OwnDomain).

// domainIn is how long a change is waited for to be in a snapshot.
const domainIn = 2 * time.Second

// ListDomains carries out GET /owner/domains, with the control plane away from the last snapshot.
func (p *People) ListDomains(ctx context.Context) ([]agentapi.OwnDomain, error) {
	if p.cfg.Control == nil {
		return nil, p.connected()
	}
	return p.shownDomains(p.cfg.Access.Snapshot().Domains), nil
}

func (p *People) shownDomains(all []controlapi.Domain) []agentapi.OwnDomain {
	out := []agentapi.OwnDomain{}
	for _, d := range all {
		out = append(out, p.shownDomain(d))
	}
	return out
}

func (p *People) shownDomain(d controlapi.Domain) agentapi.OwnDomain {
	out := agentapi.OwnDomain{Name: d.Name, State: agentapi.DomainState(d.State), Records: []agentapi.DNSRecord{}}
	if app, found := find(p.cfg.Apps.Approved(), func(app engine.App) bool { return app.ID == d.AppID }); found {
		out.App = app.Name
	}
	for _, r := range d.Records {
		out.Records = append(out.Records, agentapi.DNSRecord(r))
	}
	if !d.Until.IsZero() {
		out.Until = &d.Until
	}
	why := domainProblem(d)
	if err := forbidden(d, p.cfg.Authority); why.IsZero() && err != nil {
		why = words.InWords(err)
	}
	if !why.IsZero() {
		out.Problem, out.Words = why.String(), words.Text{why}
	}
	return out
}

// domainProblem says what keeps a name from leading here, or will.
func domainProblem(d controlapi.Domain) words.Sentence {
	switch d.Why {
	case controlapi.DomainNoText:
		return words.Of("The DNS has no record TXT at %s.", controlapi.DomainPrefix+d.Name)
	case controlapi.DomainOtherText:
		return words.Of("The record TXT at %s says something else.", controlapi.DomainPrefix+d.Name)
	case controlapi.DomainNoName:
		return words.Of("The DNS has nothing at %s.", d.Name)
	case controlapi.DomainOtherName:
		return words.Of("%s leads elsewhere.", d.Name)
	case controlapi.DomainOtherOfOurs:
		return words.Of("%s leads to another computer.", d.Name)
	case controlapi.DomainLoop:
		return words.Of("%s leads over more than 8 names, or round in a circle.", d.Name)
	case controlapi.DomainPrivate:
		return words.Of("%s leads to an address that is none of the internet.", d.Name)
	case controlapi.DomainNoAnswer:
		return words.Of("The DNS of %s does not answer. It is asked again.", d.Name)
	case controlapi.DomainDisagree:
		return words.Of("Not every resolver finds the records of %s yet. They are asked again.", d.Name)
	}
	return words.Sentence{}
}

// AddDomain carries out POST /owner/domains.
func (p *People) AddDomain(ctx context.Context, req agentapi.DomainRequest) (agentapi.OwnDomain, error) {
	app, ok := p.appCalled(req.App)
	if !ok {
		return agentapi.OwnDomain{}, agentapi.NoAppCalled(req.App)
	}
	if why := p.cfg.NoDomains; !why.IsZero() {
		return agentapi.OwnDomain{}, &agentapi.Error{Code: agentapi.CodeConflict, Message: why.String(), Words: why}
	}
	ctx, turn, err := p.begin(ctx, Owner, func(pending) bool { return false })
	if err != nil {
		return agentapi.OwnDomain{}, err
	}
	defer turn.end()
	before := p.cfg.Access.Snapshot().Domains
	added, err := p.cfg.Control.AddDomain(ctx, controlapi.AddDomain{Name: req.Name, AppID: app.ID})
	if err != nil {
		return agentapi.OwnDomain{}, refusal(err)
	}
	if slices.ContainsFunc(before, func(d controlapi.Domain) bool { return d.Name == added.Name }) {
		return p.shownDomain(added), nil
	}
	p.awaitDomain(ctx, added.Name, true)
	p.happened(agentapi.Activity{Kind: agentapi.ActivityDomainAdded, Owner: true, What: added.Name}, controlapi.Person{}, p.namedApps(app.ID))
	return p.shownDomain(added), nil
}

func (p *People) awaitDomain(ctx context.Context, name string, there bool) {
	ctx, cancel := context.WithTimeout(ctx, domainIn)
	defer cancel()
	p.cfg.Access.AwaitDomain(ctx, name, there)
}

// CheckDomain carries out POST /owner/domains/{name}/check.
func (p *People) CheckDomain(ctx context.Context, name string) (agentapi.OwnDomain, error) {
	if err := p.connected(); err != nil {
		return agentapi.OwnDomain{}, err
	}
	looked, err := p.cfg.Control.LookAtDomain(ctx, name)
	if err != nil {
		return agentapi.OwnDomain{}, refusal(err)
	}
	return p.shownDomain(looked), nil
}

// RemoveDomain carries out DELETE /owner/domains/{name}. Sessions that were made there end
// with the snapshot that is without it.
func (p *People) RemoveDomain(ctx context.Context, name string) (agentapi.Done, error) {
	if err := p.connected(); err != nil {
		return agentapi.Done{}, err
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	d, _ := find(p.cfg.Access.Snapshot().Domains, func(d controlapi.Domain) bool { return d.Name == name })
	if err := p.cfg.Control.RemoveDomain(ctx, name); err != nil {
		return agentapi.Done{}, refusal(err)
	}
	p.awaitDomain(ctx, name, false)
	p.happened(agentapi.Activity{Kind: agentapi.ActivityDomainRemoved, Owner: true, What: name}, controlapi.Person{}, p.namedApps(d.AppID))
	return agentapi.Done{OK: true}, nil
}

// forbidden says that the DNS of a domain lets an authority give no certificates; nothing of
// one that is not known, which says so itself.
func forbidden(d controlapi.Domain, authority string) error {
	if authority == "" || d.CAA == nil || slices.Contains(d.CAA, authority) {
		return nil
	}
	return words.Errorf("The DNS of %[1]s does not let %[2]s give certificates. Where the domain is registered, add: %[1]s CAA 0 issue %[3]q", d.Name, authority, authority)
}

// MayOrder refuses a certificate for an own domain that is not proven at this moment, or
// whose DNS forbids it to the authority, by the name that records CAA know that by; empty
// for one that is not known.
func (p *People) MayOrder(ctx context.Context, name, authority string) error {
	if p.cfg.Control == nil {
		return p.connected()
	}
	d, err := p.cfg.Control.LookAtDomain(ctx, name)
	switch {
	case err != nil:
		return words.Errorf("The records of %s could not be looked up.", name)
	case d.State != controlapi.DomainProven:
		return words.Errorf("%s is not proven right now: its records have to be found first.", name)
	}
	return forbidden(d, authority)
}

package certs

import (
	"context"
	"slices"
	"sync"

	"github.com/mholt/acmez/v3/acme"

	"porchlight/control/controlapi"
)

// publish tells the control plane which challenges there are, and whose account this is.
func (a *ACME) publish(ctx context.Context, values []string) error {
	all := controlapi.Challenges{Values: values}
	if authority, account := CAAName(a.cfg.Directory), AccountURL(a.cfg.Dir, a.cfg.Directory); authority != "" && account != "" {
		all.Authority, all.Account = authority, account
	}
	if all.Values == nil {
		all.Values = []string{}
	}
	return a.cfg.ByDNS.Publish(ctx, all)
}

// published are the challenges of the orders under way (acmez.Solver).
type published struct {
	*ACME

	mu     sync.Mutex
	values []string // guarded by mu
}

// Present has one more challenge be in the DNS.
func (p *published) Present(ctx context.Context, c acme.Challenge) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	values := append(slices.Clone(p.values), c.DNS01KeyAuthorization())
	if err := p.publish(ctx, values); err != nil {
		return err
	}
	p.values = values
	return nil
}

// CleanUp takes one away. One that stays ends by itself.
func (p *published) CleanUp(ctx context.Context, c acme.Challenge) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpIn)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values = slices.DeleteFunc(slices.Clone(p.values), func(value string) bool { return value == c.DNS01KeyAuthorization() })
	return p.publish(ctx, p.values)
}

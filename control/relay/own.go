package relay

import (
	"context"
	"strings"
)

// Own domains. A visitor who names one is brought to where the app's own host would be,
// with every byte of theirs as it came; a name that is not proven leads nowhere.

// resolve has the visitor's server name be the host it leads to.
func (r *Relay) resolve(ctx context.Context, p *preface) error {
	host, err := r.ownHost(ctx, p.hello.ServerName)
	if err != nil {
		return errLookup
	}
	if host != "" {
		p.hello.ServerName = host
	}
	return nil
}

// ownHost is where an own domain leads; nowhere for a name of the service's, and for any
// other that is none.
func (r *Relay) ownHost(ctx context.Context, name string) (string, error) {
	if r.cfg.Own == nil || r.cfg.Domain == "" || !strings.Contains(name, ".") ||
		name == r.cfg.Domain || strings.HasSuffix(name, "."+r.cfg.Domain) || name == r.cfg.AuthHost {
		return "", nil
	}
	host, err := r.cfg.Own(ctx, name)
	if !strings.HasSuffix(host, "."+r.cfg.Domain) {
		return "", err
	}
	return host, err
}

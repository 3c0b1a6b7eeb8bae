package agent

import (
	"context"
	"net"
	"strconv"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/certs"
	"porchlight/agent/engine"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// What of an agent depends on who this computer is at its control plane: its
// certificates.

// makeCertificates chooses where certificates come from.
func (a *Agent) makeCertificates() certs.Reporter {
	log := a.cfg.Log.With("part", "certs")
	a.names = certs.Names{
		Root: a.rootName,
		Apps: func() []string { return namesOf(a.apps.List()) },
		Live: func(app string) bool {
			found, ok := a.apps.Lookup(app)
			return ok && found.Status == agentapi.StatusLive
		},
		Reached:    func() bool { return a.tunnel != nil && a.tunnel.Connected() },
		Own:        func(name string) bool { _, here := a.access.OwnDomain(name); return here },
		OwnDomains: a.provenDomains,
		Prove: func(ctx context.Context, name string) error {
			return a.people.MayOrder(ctx, name, certs.CAAName(a.cfg.ACME.Directory))
		},
	}
	if a.cfg.ACME == nil {
		return certs.New(certs.Config{Issue: a.cfg.IssueCertificate, Allowed: a.names.Serves, OnMade: a.changes.Raise, Log: log})
	}
	c := *a.cfg.ACME
	raise := func() { a.certified.Raise(); a.changes.Raise() }
	c.Allowed, c.OnTrouble, c.OnMade, c.Log = a.names.MayOrder, raise, raise, log
	c.Before, c.Own = a.names.Before, a.names.OwnersDNS
	if a.client != nil {
		c.ByDNS = &certs.PublishConfig{Root: a.rootName, Offered: func() bool { return a.access.Snapshot().Challenges }, Publish: a.client.PublishChallenges}
	}
	a.acme = certs.NewACME(c)
	return a.acme
}

// orderCertificates keeps the certificates of the root host and the live apps.
func (a *Agent) orderCertificates(ctx context.Context) error {
	changed, cancel := a.changes.Subscribe()
	defer cancel()
	return a.acme.Run(ctx, a.names.Ordered, changed)
}

// provenDomains are the own domains that have a certificate before a visitor comes.
func (a *Agent) provenDomains() (names []string) {
	for _, d := range a.access.Snapshot().Domains {
		if d.State == controlapi.DomainProven {
			names = append(names, d.Name)
		}
	}
	return names
}

// publicSince is since when a host has had a certificate that browsers everywhere trust;
// false where it has none, as under an authority of the owner's own.
func (a *Agent) publicSince(host string) (since time.Time, is bool) {
	if a.acme == nil {
		return time.Time{}, false
	}
	return a.acme.PublicSince(host)
}

// certificate is what the owner is told about the certificate of an app.
func (a *Agent) certificate(app string) *agentapi.Certificate {
	root := a.rootName()
	if root == "" {
		return nil
	}
	s, known := a.certs.State(app + "." + root)
	if !known {
		return nil
	}
	out := &agentapi.Certificate{Problem: s.Problem.String(), Common: s.Common}
	if !s.Problem.IsZero() {
		out.Words = words.Text{s.Problem}
	}
	if !s.NotAfter.IsZero() {
		out.NotAfter, out.RenewsAfter = &s.NotAfter, &s.RenewsAfter
	}
	return out
}

// rootName is the root host without a port, empty before it is known.
func (a *Agent) rootName() string { return controlapi.HostName(a.computer().Host) }

// ApprovedNames are the sub-addresses given to apps, none of which may become
// the name of this computer.
func (a *Agent) ApprovedNames() []string {
	return namesOf(a.apps.Approved())
}

func namesOf(apps []engine.App) []string {
	names := make([]string, len(apps))
	for i, app := range apps {
		names[i] = app.Name
	}
	return names
}

func portOf(address string) int {
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text) // of a listener, so it is a number
	return port
}

// EndVisits closes everything visitors have open. They come back if they may.
func (a *Agent) EndVisits() { a.access.CloseAll() }

package agent

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/certs"
	"porchlight/agent/engine"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// What of an agent depends on who this computer is at its control plane: which
// certificates it needs.

// makeCertificates chooses where certificates come from.
func (a *Agent) makeCertificates() certs.Reporter {
	log := a.cfg.Log.With("part", "certs")
	if a.cfg.ACME == nil {
		return certs.New(certs.Config{Issue: a.cfg.IssueCertificate, Allowed: a.servesName, OnMade: a.changes.Raise, Log: log})
	}
	c := *a.cfg.ACME
	told := func() { a.certified.Raise(); a.changes.Raise() }
	c.Allowed, c.OnTrouble, c.OnMade, c.Log = a.ordersName, told, told, log
	a.acme = certs.NewACME(c)
	return a.acme
}

// orderCertificates keeps the certificates of the root host and the live apps.
func (a *Agent) orderCertificates(ctx context.Context) error {
	changed, cancel := a.changes.Subscribe()
	defer cancel()
	return a.acme.Run(ctx, a.orderedNames, changed)
}

// orderedNames are the names that are to have a certificate before a visitor
// comes: none while no relay sends any, for the authority comes that way too.
func (a *Agent) orderedNames() []string {
	root := a.rootName()
	if root == "" || a.tunnel == nil || !a.tunnel.Connected() {
		return nil
	}
	names := []string{root}
	for _, app := range a.apps.List() {
		if app.Status == agentapi.StatusLive {
			names = append(names, app.Name+"."+root)
		}
	}
	return names
}

// ordersName says whether a certificate may be ordered for a name: of the root
// host, the launcher, and live apps only. An authority issues so many a week, so
// strangers must not choose the names.
func (a *Agent) ordersName(name string) bool {
	root := a.rootName()
	if root == "" {
		return false
	}
	label, below := strings.CutSuffix(name, "."+root)
	if name == root || below && label == controlapi.Portal {
		return true
	}
	app, ok := a.apps.Lookup(label)
	return below && ok && app.Status == agentapi.StatusLive
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
	out := &agentapi.Certificate{Problem: s.Problem.String()}
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

// servesName says whether the agent answers TLS for a host name: the root host
// and one label below it. Whether an app is there is for the page to say, not
// for the handshake.
func (a *Agent) servesName(name string) bool {
	root := a.rootName()
	if root == "" {
		return false
	}
	label, below := strings.CutSuffix(name, "."+root)
	return name == root || below && engine.ValidName(label)
}

// ApprovedNames are the sub-addresses given to apps, none of which may become
// the name of this computer.
func (a *Agent) ApprovedNames() []string {
	approved := a.apps.Approved()
	names := make([]string, len(approved))
	for i, app := range approved {
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

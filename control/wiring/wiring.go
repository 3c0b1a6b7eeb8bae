// Package wiring puts a control plane together: domain, pages, relay and
// administration. A server of many (package serve) and a computer that is its own
// (agent/local) are the same but for what they stand on, which comes in as a
// Config. Nothing runs and nobody is listened to here.
package wiring

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"time"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/archive"
	"porchlight/control/controlapi"
	"porchlight/control/mail"
	"porchlight/control/relay"
	"porchlight/control/web"
)

// Config of a ControlPlane. What one part has to know of another is filled in by Build:
// in Control the relays and OnCredentialEnded, in Relay the auth host, Handler,
// TooLong, Authenticate and all of Peers but its listener and address.
type Config struct {
	Control control.Config
	Relay   relay.Config
	// Tunnel is host:port at which agents reach the relay.
	Tunnel string
	// Self is host:port at which this node reaches its own relay, "" for Tunnel.
	Self string
	// KeptMail is the command that shows mails where they are not sent.
	KeptMail string
	// Version is that of the program.
	Version string
	// NoMail is web.Config's.
	NoMail bool
	// RootPEM is the authority to trust; nil where everybody does.
	RootPEM []byte
	// Files are what belongs into a backup beside the rows; nil for nothing.
	Files func() ([]archive.File, error)
	// SecurityContact is web.Config's.
	SecurityContact string
	// Install is web.Config's.
	Install *os.Root
	// AdminURL is web.Config's.
	AdminURL string
	// CertEnds is web.Config's.
	CertEnds func() time.Time
	// Wrap goes round the pages and the agents' interface; nil for nothing.
	Wrap func(http.Handler) http.Handler
	Log  *slog.Logger
}

// ControlPlane is a control plane with its relay.
type ControlPlane struct {
	Service *control.Service
	Relay   *relay.Relay
	Admin   *admin.Admin
	// AdminPages answer Config.AdminURL, where that is not the auth host's.
	AdminPages http.Handler
}

// Build starts nothing.
func Build(cfg Config) (*ControlPlane, error) {
	p := &ControlPlane{}
	here := controlapi.Relay{Address: cfg.Tunnel, ServerName: cfg.Control.AuthHost}
	domain := cfg.Control
	domain.Relays = []controlapi.Relay{here}
	// They are for later, when there is a relay.
	domain.RelaysFor = func(computerID string) []controlapi.Relay { return p.Relay.RelaysFor(computerID) }
	domain.Held = func(ctx context.Context, host string) (held, sure bool) { return p.Relay.Held(ctx, host) }
	domain.OnCredentialEnded = func(computerID string) { p.Relay.Kick(computerID) }
	domain.OnSuspended = func(computerID string, since time.Time) { p.Relay.Suspend(computerID, since) }
	domain.Node = cfg.Relay.Node
	domain.Nodes = func(context.Context) ([]control.Node, error) { return p.nodes(cfg), nil }
	domain.CertificateOf = func(ctx context.Context, host string) *control.Certificate {
		return certificateOf(ctx, cmp.Or(cfg.Self, cfg.Tunnel), host, cfg.RootPEM, p.Service.Now())
	}
	domain.Limits = func() []control.Limit { return p.limits() }
	domain.Log = cfg.Log.With("part", "control")
	var err error
	if p.Service, err = control.New(domain); err != nil {
		return nil, err
	}
	outbox, _ := domain.Mail.(*mail.Outbox) // nil where mails are sent
	if queue, ok := domain.Mail.(*mail.SMTP); ok {
		queue.OnGivenUp(p.Service.Agents.Changed)
	}
	p.Admin, err = admin.New(admin.Config{
		Accounts:    p.Service.Accounts,
		Computers:   p.Service.Computers,
		Clients:     p.Service.Clients,
		Keys:        p.Service.Keys,
		Suspensions: p.Service.Suspensions,
		Recovery:    p.Service.Recovery,
		Operators:   p.Service.Operators,
		Tokens:      p.Service.AdminTokens,
		Overview:    p.Service.Overview,
		Challenges:  p.Service.Challenges,
		Audit:       domain.Audit,
		Store:       domain.Store,
		Naming:      domain.Naming,
		Outbox:      outbox,
		RootPEM:     cfg.RootPEM,
		Files:       cfg.Files,
		Log:         cfg.Log.With("part", "admin"),
	})
	if err != nil {
		return nil, err
	}
	pages := web.Config{Now: domain.Now, Log: domain.Log, LetIn: relay.LetIn, SecurityContact: cfg.SecurityContact, Install: cfg.Install, NoMail: cfg.NoMail, AdminURL: cfg.AdminURL, AdminAPI: p.Admin.API(), CertEnds: cfg.CertEnds}
	if outbox != nil {
		pages.KeptMail = cfg.KeptMail
	}
	way := cfg.Relay
	way.AuthHost, way.Domain, way.PublicPort = domain.AuthHost, domain.Domain, domain.PublicPort
	way.Authenticate = p.authenticate
	way.Sync, way.Knows = p.sync, p.Service.Agents.NoteAppGrants
	way.Own = func(ctx context.Context, name string) (string, error) {
		route, err := p.Service.Domains.Route(ctx, name)
		return route.Host, err
	}
	way.Carried = p.Service.Usage.Count
	way.Date = domain.Now // as that of pages
	way.Handler, way.TooLong = web.New(p.Service, pages), web.MarkTooLong
	if cfg.Wrap != nil {
		way.Handler = cfg.Wrap(way.Handler)
	}
	if cfg.AdminURL != "" && cfg.AdminURL != p.Service.AuthURL() {
		p.AdminPages = web.NewAdmin(p.Service, pages)
		if cfg.Wrap != nil {
			p.AdminPages = cfg.Wrap(p.AdminPages)
		}
	}
	way.Log = cfg.Log.With("part", "relay")
	if way.Peers != nil {
		peers := *way.Peers
		peers.Store, peers.Relay, peers.Domain, peers.Changed = domain.Store, here, domain.Domain, p.Service.Feed.WakeAll
		peers.Secrets = p.Service.Keys.PeerSecrets
		way.Peers = &peers
	}
	p.Relay, err = relay.New(way)
	return p, err
}

// nodes are those that are there, of which this one knows its own numbers.
func (p *ControlPlane) nodes(cfg Config) []control.Node {
	var out []control.Node
	for _, n := range p.Relay.Nodes() {
		node := control.Node{Name: n.Name, Version: n.Version, Address: n.Address, Draining: n.Draining, This: n.This}
		if n.This {
			stats := p.Relay.Stats()
			node.Computers, node.Visits = stats.Sessions, stats.Visitors
			node.Version, node.Address = cmp.Or(n.Version, cfg.Version), cmp.Or(n.Address, cfg.Tunnel)
			if cfg.CertEnds != nil {
				node.CertificateEnds = cfg.CertEnds().UTC()
			}
		}
		out = append(out, node)
	}
	return out
}

// limits are those of the relay, with how often each was reached.
func (p *ControlPlane) limits() []control.Limit {
	var out []control.Limit
	for _, l := range p.Relay.LimitsReached() {
		out = append(out, control.Limit{Name: l.Name, Value: l.Value, Reached: l.Reached})
	}
	return out
}

// authenticate tells the relay whose computer a credential is, or in a refusal that the
// store is away and when to come back.
func (p *ControlPlane) authenticate(ctx context.Context, credential string) (controlapi.Computer, error) {
	computer, err := p.Service.Agents.Authenticate(ctx, credential)
	return computer, orAway(err)
}

// orAway is err, and where the store is away a refusal that says when to come back, too: the
// agent is told that, and the log says why.
func orAway(err error) error {
	if refusal, away := control.Away(err); away {
		return fmt.Errorf("%w (%w)", refusal, err)
	}
	return err
}

// sync tells an agent its snapshots through the relay, which carries bytes of which it
// does not know the meaning.
func (p *ControlPlane) sync(credential string, client netip.Addr, version string, tell func([]byte) error, ended func(error)) (stop func()) {
	return p.Service.Feed.Tell(credential, client, version, func(s controlapi.Snapshot) error {
		if s.Unchanged {
			return tell(nil)
		}
		b, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return tell(b)
	}, func(err error) { ended(orAway(err)) })
}

// Package local puts an agent, a control plane and a relay into one process:
// Porchlight on this computer alone, with no account and nothing to configure.
//
// Nothing is short-circuited. A visitor's connection reaches the relay on
// 127.0.0.1:8443, goes through a data connection of the tunnel, and is decrypted
// by the agent, exactly as with a control plane elsewhere; mail goes to an
// outbox that the owner reads.
//
// It is the one place where agent and control plane are wired together.
package local

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/certs"
	"porchlight/agent/people"
	"porchlight/control"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/control/relay"
	"porchlight/control/wiring"
	"porchlight/internal/localca"
	"porchlight/internal/private"
	"porchlight/internal/words"
)

const (
	domain    = "localhost" // browsers send every name under it to this computer
	authLabel = "control"
	authHost  = authLabel + "." + domain

	// DefaultHTTPS is where the local relay listens unless told otherwise.
	DefaultHTTPS = "127.0.0.1:8443"

	// relayGrace is how long visits may go on while Porchlight quits.
	relayGrace = time.Second

	// outboxShown is how many mails the owner is shown.
	outboxShown = 100
)

// Config of a local Porchlight.
type Config struct {
	// Agent says how the agent runs; who it is at the control plane is filled in.
	Agent agent.Config
	HTTPS string // local relay; port 0 picks one and keeps it
	// ForgetPeople removes everybody but the owner, and every grant,
	// before anything is served: this computer was connected elsewhere since.
	ForgetPeople bool
	// grace stands in for relayGrace in tests.
	grace time.Duration
}

// Local is a local Porchlight. It is made by New.
type Local struct {
	agent        *agent.Agent
	controlPlane *controlPlane
	listeners    []net.Listener // of the relay
	dataDir      string
}

// New opens the data directory and the listeners; it serves nothing before Run. The
// errors are sentences for the owner. Call Close when Run is not going to be called.
func New(ctx context.Context, cfg Config) (_ *Local, err error) {
	dataDir := cfg.Agent.DataDir
	if err := private.Dir(dataDir); err != nil {
		return nil, words.Errorf("cannot create the data directory %s: %w", dataDir, err)
	}
	cfg.HTTPS = cmp.Or(cfg.HTTPS, DefaultHTTPS)
	if err := mayListen(dataDir, cfg.HTTPS); err != nil {
		return nil, err
	}
	l := &Local{dataDir: dataDir}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if l.controlPlane, err = openControlPlane(ctx, cfg.Agent); err != nil {
		return nil, err
	}
	var port int
	if l.listeners, port, err = listen(dataDir, cfg.HTTPS); err != nil {
		return nil, err
	}
	if err := l.controlPlane.build(ctx, cfg, l.listeners[0].Addr().String(), port); err != nil {
		return nil, err
	}
	as := cfg.Agent
	as.ComputerID = l.controlPlane.computerID
	as.ControlPlane = l.controlPlane.forAgent()
	as.IssueCertificate = l.controlPlane.ca.Issue
	as.OwnPorts = []int{port}
	as.AllowHosts = l.controlPlane.Service.Clients.AllowOnly
	as.Outbox, as.OutboxSize = l.controlPlane.outboxMails, l.controlPlane.outboxSize
	as.OwnClients = &people.OwnClients{PublicID: l.controlPlane.publicClient, AddPublic: l.controlPlane.addClient, RootCA: RootCAPath(dataDir)}
	if l.agent, err = agent.New(as); err != nil {
		return nil, err
	}
	return l, nil
}

// Run serves until ctx ends or a part fails, and closes everything. Requests under
// way get a moment to finish. It returns nil when ctx ended.
func (l *Local) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.controlPlane.Service.Run(ctx) })
	g.Go(func() error { return l.controlPlane.Relay.Serve(ctx, l.listeners...) })
	g.Go(func() error { return l.agent.Run(ctx) })
	g.Go(func() error { return l.controlPlane.Admin.Serve(ctx, controlDir(l.dataDir)) })
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, l.controlPlane.close())
}

// Close releases the data directory and the listeners. Run does it by itself.
func (l *Local) Close() error {
	closeAll(l.listeners)
	var errs []error
	if l.agent != nil {
		errs = append(errs, l.agent.Close())
	}
	if l.controlPlane != nil {
		errs = append(errs, l.controlPlane.close())
	}
	return errors.Join(errs...)
}

// Agent is the agent of this Porchlight.
func (l *Local) Agent() *agent.Agent { return l.agent }

// controlPlane is the control plane and relay of this computer.
type controlPlane struct {
	*wiring.ControlPlane
	ca         *localca.CA
	store      kv.Store
	outbox     *mail.Outbox
	credential string
	computerID string
}

// openControlPlane opens what the control plane keeps, which also makes sure that no
// other process uses the data directory.
func openControlPlane(ctx context.Context, cfg agent.Config) (p *controlPlane, err error) {
	p = &controlPlane{}
	// porchlight-control opens the same directory. A store that is refused is
	// refused before anything is made or renewed beside it.
	p.store, err = kv.Open(ctx, "file:"+storePath(cfg.DataDir), kv.Options{Now: cfg.Now})
	if err != nil {
		return nil, words.Errorf("what gives this computer its addresses cannot begin: %w", err)
	}
	p.outbox = mail.NewOutbox(p.store, cfg.Now)
	p.ca, err = localca.Open(filepath.Dir(RootCAPath(cfg.DataDir)), localca.Options{
		Names:        []string{domain},
		Organisation: "Porchlight on this computer",
		Log:          cfg.Log.With("part", "certs"),
	})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// Used says whether a computer was on its own in dataDir before.
func Used(dataDir string) bool {
	_, err := os.Stat(storePath(dataDir))
	return err == nil
}

func storePath(dataDir string) string { return filepath.Join(controlDir(dataDir), "control.db") }

// build makes control plane and relay for the address they listen on.
func (p *controlPlane) build(ctx context.Context, cfg Config, addr string, port int) (err error) {
	p.ControlPlane, err = wiring.Build(wiring.Config{
		Control: control.Config{
			Store:  p.store,
			Naming: control.Naming{Domain: domain, AuthHost: authHost, PublicPort: port},
			Mail:   p.outbox,
			Now:    cfg.Agent.Now,
		},
		Relay:    relay.Config{TLS: authTLS(p.ca, cfg.Agent.Log), Grace: cmp.Or(cfg.grace, relayGrace)},
		Tunnel:   addr,
		KeptMail: "porchlight outbox",
		RootPEM:  p.ca.RootPEM(),
		Log:      cfg.Agent.Log,
	})
	if err != nil {
		return err
	}
	if err := p.enrol(ctx); err != nil {
		return err
	}
	if cfg.ForgetPeople {
		return p.forgetPeople(ctx)
	}
	return nil
}

// authTLS has the auth host's certificates issued by our own authority.
func authTLS(ca *localca.CA, log *slog.Logger) *tls.Config {
	return certs.TLSConfig(certs.New(certs.Config{
		Issue:   ca.Issue,
		Allowed: func(name string) bool { return name == authHost },
		Log:     log.With("part", "certs"),
	}))
}

// RootCAPath is where a data directory keeps the certificate (PEM) that browsers
// have to trust in local mode.
func RootCAPath(dataDir string) string { return filepath.Join(dataDir, "ca", localca.RootFile) }

// controlDir is the control plane's own data directory; porchlight-control takes
// it as --data, while this process runs and when it does not.
func controlDir(dataDir string) string { return filepath.Join(dataDir, "control") }

// enrol makes the owner's account and this computer, or finds them, and replaces
// the device credential: it lives in this process only.
func (p *controlPlane) enrol(ctx context.Context) error {
	short := shortName(loginName())
	e, err := p.Service.Computers.Ensure(ctx, "owner@"+short+"."+domain, short)
	if err != nil {
		return words.Errorf("cannot set up the local control plane: %w", err)
	}
	p.credential, p.computerID = e.Credential, e.Computer.ID
	return nil
}

func (p *controlPlane) forAgent() *agent.ControlPlane {
	return &agent.ControlPlane{
		AuthURL:    p.Service.AuthURL(),
		Credential: p.credential,
		RootCAs:    p.ca.Pool(),
		Local:      true,
	}
}

func (p *controlPlane) outboxSize(ctx context.Context) (int, error) {
	size, err := p.outbox.Size(ctx)
	return min(size, outboxShown), err
}

func (p *controlPlane) outboxMails(ctx context.Context) ([]agentapi.Mail, error) {
	entries, err := p.outbox.List(ctx, outboxShown)
	if err != nil {
		return nil, err
	}
	mails := make([]agentapi.Mail, len(entries))
	for i, e := range entries {
		mails[i] = agentapi.Mail{To: e.To, Subject: e.Subject, Text: e.Text, Links: e.Links, At: e.At}
	}
	return mails, nil
}

// publicClient is the id of the newest client of a name that has no secret.
func (p *controlPlane) publicClient(ctx context.Context, name string) (id string, err error) {
	clients, err := p.Service.Clients.List(ctx) // oldest first
	for _, c := range clients {
		if c.Public && c.Host == "" && strings.EqualFold(c.Name, name) { // of a host, anything may call itself so
			id = c.ID
		}
	}
	return id, err
}

func (p *controlPlane) addClient(ctx context.Context, name string, redirectURIs []string) (string, error) {
	c, err := p.Service.Clients.AddPublic(ctx, name, redirectURIs)
	return c.ID, err
}

func (p *controlPlane) close() error { return p.store.Close() }

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

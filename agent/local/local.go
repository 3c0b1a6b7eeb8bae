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
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/certs"
	"porchlight/agent/localapi"
	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/control/relay"
	"porchlight/control/web"
	"porchlight/internal/localca"
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
	DataDir         string
	API             string // loopback API; port 0 picks one
	HTTPS           string // local relay; port 0 picks one and keeps it
	Mode            agentapi.Mode
	FirstPartyApp   string
	OwnerSecretHash []byte             // see agent.Config
	DeskSecretHash  []byte             // see agent.Config
	Grace           time.Duration      // see agent.Config
	FirstWithin     time.Duration      // see agent.Config
	Listeners       *agent.Listeners   // see agent.Config; API is ignored with it
	Connector       localapi.Connector // see agent.Config
	// ForgetPeople removes everybody but the owner, and every OAuth grant,
	// before anything is served: this computer was connected elsewhere since.
	ForgetPeople bool
	Now          func() time.Time // see agent.Config
	Log          *slog.Logger
}

// Running is a local Porchlight that serves.
type Running struct {
	agent     *agent.Agent
	plane     *plane
	listeners []net.Listener // of the relay
	dataDir   string
	cancel    context.CancelFunc
	done      chan struct{}
	err       error // set before done is closed
}

// Start opens the data directory and the listeners and begins to serve. When it
// returns nil the loopback API, the relay and the agent accept connections. The
// errors are sentences for the owner; one of a ctx that ended wraps its error.
func Start(ctx context.Context, cfg Config) (*Running, error) {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the data directory %s: %w", cfg.DataDir, err)
	}
	if cfg.HTTPS == "" {
		cfg.HTTPS = DefaultHTTPS
	}
	if err := mayListen(cfg.DataDir, cfg.HTTPS); err != nil {
		return nil, err
	}
	plane, err := openPlane(ctx, cfg)
	if err != nil {
		return nil, err
	}
	listeners, port, err := listen(cfg.DataDir, cfg.HTTPS)
	if err != nil {
		return nil, errors.Join(err, plane.close())
	}
	if err := plane.build(ctx, cfg, listeners[0].Addr().String(), port); err != nil {
		closeAll(listeners)
		return nil, errors.Join(err, plane.close())
	}
	a, err := agent.New(agent.Config{
		DataDir:          cfg.DataDir,
		API:              cfg.API,
		Mode:             cfg.Mode,
		FirstPartyApp:    cfg.FirstPartyApp,
		OwnerSecretHash:  cfg.OwnerSecretHash,
		DeskSecretHash:   cfg.DeskSecretHash,
		Grace:            cfg.Grace,
		FirstWithin:      cfg.FirstWithin,
		Listeners:        cfg.Listeners,
		ComputerID:       plane.computerID,
		Link:             plane.link(),
		Connector:        cfg.Connector,
		IssueCertificate: plane.ca.Issue,
		OwnPorts:         []int{port},
		Outbox:           plane.outboxMails,
		OutboxSize:       plane.outboxSize,
		Now:              cfg.Now,
		Log:              cfg.Log,
	})
	if err != nil {
		closeAll(listeners)
		return nil, errors.Join(err, plane.close())
	}
	r := serve(ctx, a, plane, listeners, cfg.DataDir)
	select {
	case <-a.Ready():
	case <-r.done:
		if r.err == nil { // nothing failed: it was told to stop
			return nil, fmt.Errorf("Porchlight was stopped while it started: %w", ctx.Err())
		}
		return nil, r.err
	case <-time.After(readyWait):
		// It serves; what is late says so in the owner's state.
	}
	return r, nil
}

// readyWait bounds how long Start waits for the first visitor to be possible.
const readyWait = 10 * time.Second

// serve runs the three until the first of them ends or Close is called.
func serve(ctx context.Context, a *agent.Agent, p *plane, listeners []net.Listener, dataDir string) *Running {
	ctx, cancel := context.WithCancel(ctx)
	r := &Running{agent: a, plane: p, listeners: listeners, dataDir: dataDir, cancel: cancel, done: make(chan struct{})}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.service.Run(ctx) })
	g.Go(func() error { return p.relay.Serve(ctx, listeners...) })
	g.Go(func() error { return a.Run(ctx) })
	g.Go(func() error { return p.admin.Serve(ctx, controlDir(dataDir)) })
	go func() {
		defer close(r.done)
		defer cancel()
		err := g.Wait()
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		r.err = errors.Join(err, p.close())
	}()
	return r
}

// Agent is the agent of this Porchlight.
func (r *Running) Agent() *agent.Agent { return r.agent }

// API is the address of the loopback API.
func (r *Running) API() string { return r.agent.API() }

// OwnerSocket is the path of the owner tier's unix socket.
func (r *Running) OwnerSocket() string { return r.agent.OwnerSocket() }

// RootCAPath is the file (PEM) with the certificate browsers have to trust.
func (r *Running) RootCAPath() string { return r.plane.rootPath }

// Done is closed when nothing serves any more.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait returns when nothing serves any more: nil after Close or the end of
// Start's context, otherwise why it stopped.
func (r *Running) Wait() error {
	<-r.done
	return r.err
}

// Close stops serving: requests under way get a moment to finish. It returns
// Wait's error, or ctx's when that ends first.
func (r *Running) Close(ctx context.Context) error {
	r.cancel()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// plane is the control plane and relay of this computer.
type plane struct {
	ca         *localca.CA
	rootPath   string // of the authority's root certificate, PEM
	store      kv.Store
	outbox     *mail.Outbox
	service    *control.Service
	relay      *relay.Relay
	admin      *admin.Admin
	credential string
	computerID string
}

// openPlane opens what the control plane keeps, which also makes sure that no
// other process uses the data directory.
func openPlane(ctx context.Context, cfg Config) (p *plane, err error) {
	p = &plane{rootPath: RootCAPath(cfg.DataDir)}
	// porchlight-control opens the same directory. A store that is refused is
	// refused before anything is made or renewed beside it.
	p.store, err = kv.Open(ctx, "file:"+storePath(cfg.DataDir), kv.Options{})
	if err != nil {
		return nil, err
	}
	p.outbox = mail.NewOutbox(p.store, nil)
	p.ca, err = localca.Open(filepath.Dir(p.rootPath), localca.Options{
		Names:        []string{domain},
		Organisation: "Porchlight on this computer",
		Log:          cfg.Log.With("part", "certs"),
	})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func storePath(dataDir string) string { return filepath.Join(controlDir(dataDir), "control.db") }

// build makes control plane and relay for the address they listen on.
func (p *plane) build(ctx context.Context, cfg Config, addr string, port int) (err error) {
	naming := control.Naming{Domain: domain, AuthHost: authHost, PublicPort: port}
	p.service, err = control.New(control.Config{
		Store:  p.store,
		Naming: naming,
		Mail:   p.outbox,
		Relays: []controlapi.Relay{{Address: addr, ServerName: authHost}},
		OnCredentialEnded: func(computerID string) {
			if p.relay != nil { // there is none yet when build replaces the last run's
				p.relay.Kick(computerID)
			}
		},
		Log: cfg.Log.With("part", "control"),
	})
	if err != nil {
		return err
	}
	if err := p.enrol(ctx); err != nil {
		return err
	}
	if cfg.ForgetPeople {
		if err := p.forgetPeople(ctx); err != nil {
			return err
		}
	}
	p.admin, err = admin.New(admin.Config{
		Accounts:  p.service.Accounts,
		Computers: p.service.Computers,
		Clients:   p.service.Clients,
		Keys:      p.service.Keys,
		Store:     p.store,
		Naming:    naming,
		Outbox:    p.outbox,
		RootPEM:   p.ca.RootPEM(),
		Log:       cfg.Log.With("part", "admin"),
	})
	if err != nil {
		return err
	}
	names := certs.New(certs.Config{
		Issue:   p.ca.Issue,
		Allowed: func(name string) bool { return name == authHost },
		Log:     cfg.Log.With("part", "certs"),
	})
	p.relay, err = relay.New(relay.Config{
		AuthHost:     authHost,
		TLS:          certs.TLSConfig(names),
		Handler:      web.New(p.service, web.Config{KeptMail: "porchlight outbox", Log: cfg.Log.With("part", "control")}),
		Authenticate: p.service.Agents.Authenticate,
		Grace:        relayGrace,
		Log:          cfg.Log.With("part", "relay"),
	})
	return err
}

// RootCAPath is where a data directory keeps the certificate (PEM) that browsers
// have to trust in local mode.
func RootCAPath(dataDir string) string { return filepath.Join(dataDir, "ca", localca.RootFile) }

// controlDir is the control plane's own data directory; porchlight-control takes
// it as --data, while this process runs and when it does not.
func controlDir(dataDir string) string { return filepath.Join(dataDir, "control") }

// enrol makes the owner's account and this computer, or finds them, and replaces
// the device credential: it lives in this process only.
func (p *plane) enrol(ctx context.Context) error {
	short := shortName(loginName())
	e, err := p.service.Computers.Ensure(ctx, "owner@"+short+"."+domain, short)
	if err != nil {
		return fmt.Errorf("cannot set up the local control plane: %w", err)
	}
	p.credential, p.computerID = e.Credential, e.Computer.ID
	return nil
}

func (p *plane) link() *agent.Link {
	return &agent.Link{
		AuthURL:    p.service.AuthURL(),
		Credential: p.credential,
		RootCAs:    p.ca.Pool(),
		Local:      true,
	}
}

func (p *plane) outboxSize(ctx context.Context) (int, error) {
	size, err := p.outbox.Size(ctx)
	return min(size, outboxShown), err
}

func (p *plane) outboxMails(ctx context.Context) ([]agentapi.Mail, error) {
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

func (p *plane) close() error { return p.store.Close() }

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

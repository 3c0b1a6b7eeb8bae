// Package serve is one node of a control plane for many: store, domain, pages,
// relay, administration and metrics, wired together.
//
// Open checks the configuration and opens what can fail (the store, the
// certificates, the listeners), Run serves until its context ends, and then
// drains: /readyz turns to 503, held syncs are answered, agents are told to go
// elsewhere, what is under way may finish within the grace, and the mails of what
// was answered are written.
//
// With a data directory the rows are in one file there, for one node. With
// PostgreSQL any number of nodes share them; a data directory may be given as
// well, and then holds the administration's socket and the internal authority.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/localca"
	"porchlight/control/mail"
	"porchlight/control/relay"
	"porchlight/control/web"
)

// TLS modes of the auth host.
const (
	TLSInternal = "internal" // an authority of its own, in DataDir/ca
	TLSFiles    = "files"    // CertFile and KeyFile, read again when they change
	TLSACME     = "acme"     // issued over ACME, kept in DataDir/acme
)

// StoreFile is the name of the store in a data directory.
const StoreFile = "control.db"

// DefaultGrace is how long what is under way may take to finish.
const DefaultGrace = 10 * time.Second

// Config of a Node. Domain, Listen, and one of DataDir and Postgres are
// required.
type Config struct {
	DataDir  string
	Postgres string // URL; holds a password and is never logged
	admin.Naming
	Listen []string // host:port of the relay and the auth host
	// TunnelAddress is host:port at which agents reach this node; empty means
	// the auth host and the public port.
	TunnelAddress string
	TLS           string
	CertFile      string // PEM, with the chain
	KeyFile       string // PEM
	ACMEDirectory string // URL of the authority; empty means Let's Encrypt
	Mail          MailConfig
	// Metrics is host:port of /healthz, /readyz and /metrics; empty means none.
	// They ask nobody who they are, so an address that is not of the loopback
	// interface is refused unless MetricsExposed.
	Metrics        string
	MetricsExposed bool
	Node           string // tells this node from others in logs, metrics and to agents
	// PeerAddress is host:port at which the other nodes of one PostgreSQL reach
	// this one, for visitors whose computer is connected here; empty means that
	// it is the only node, or that a visitor must find the right one.
	PeerAddress string
	// OpenSignUp and MembersEnrol are those of control.Config.
	OpenSignUp   bool
	MembersEnrol bool
	// DrainWait is how long connections are still taken after /readyz has turned
	// to 503: what a load balancer needs to notice.
	DrainWait time.Duration
	Grace     time.Duration // for what is under way then
	Log       *slog.Logger
}

// Complete checks the configuration and fills in what follows from the rest.
// The errors are sentences that name the flag to change.
func (c *Config) Complete() error {
	switch {
	case c.DataDir == "" && c.Postgres == "":
		return errors.New("say where the rows are kept: --data DIR or --postgres URL")
	case c.Domain == "":
		return errors.New("say under which domain the computers are: --domain porch.example")
	case len(c.Listen) == 0:
		return errors.New("say where visitors connect: --listen :443")
	case c.PublicPort < 0 || c.PublicPort > 65535:
		return fmt.Errorf("%d is not a port (--public-port)", c.PublicPort)
	}
	if c.TLS == "" {
		c.TLS = TLSInternal
	}
	switch c.TLS {
	case TLSInternal:
		if c.DataDir == "" {
			return errors.New("an authority of its own (--tls internal) is kept in a data directory: give --data DIR too, or --tls files")
		}
		if c.CertFile != "" || c.KeyFile != "" {
			return errors.New("--cert and --key belong to --tls files")
		}
	case TLSFiles:
		if c.CertFile == "" || c.KeyFile == "" {
			return errors.New("--tls files needs --cert FILE and --key FILE")
		}
	case TLSACME:
		if c.CertFile != "" || c.KeyFile != "" {
			return errors.New("--cert and --key belong to --tls files")
		}
	default:
		return fmt.Errorf("--tls is internal, acme or files, not %q", c.TLS)
	}
	if c.AuthHost == "" {
		c.AuthHost = "control." + c.Domain
	}
	for _, addr := range c.Listen {
		_, port, err := net.SplitHostPort(addr)
		n, convErr := strconv.Atoi(port)
		if err != nil || convErr != nil || n < 0 || n > 65535 {
			return fmt.Errorf("%q is not an address of the form 192.0.2.1:443 or :443 (--listen)", addr)
		}
		if c.PublicPort == 0 {
			c.PublicPort = n // still 0 where a free port is asked for
		}
	}
	if c.TunnelAddress != "" {
		if _, _, err := net.SplitHostPort(c.TunnelAddress); err != nil {
			return fmt.Errorf("%q is not an address of the form relay1.example:443 (--tunnel-address)", c.TunnelAddress)
		}
	}
	if err := c.completePeers(); err != nil {
		return err
	}
	if c.Metrics != "" && !c.MetricsExposed && !isLoopback(c.Metrics) {
		return fmt.Errorf("%q is not an address of the loopback interface, and metrics ask nobody who they are (--metrics); add --metrics-exposed if your network keeps others out", c.Metrics)
	}
	if err := c.completeACME(); err != nil {
		return err
	}
	if err := c.Mail.complete(c.AuthHost); err != nil {
		return err
	}
	if c.DrainWait < 0 {
		return errors.New("--drain-wait cannot be negative")
	}
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// isLoopback says whether addr, host:port, can be reached from this machine only.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// OpenStore opens the rows of a configuration.
func OpenStore(ctx context.Context, dataDir, postgres string) (kv.Portable, error) {
	if postgres != "" {
		store, err := kv.OpenPostgres(ctx, postgres, kv.PostgresOptions{})
		if err != nil {
			return nil, err // not the nil pointer, which would make a store
		}
		return store, nil
	}
	store, err := kv.OpenBolt(filepath.Join(dataDir, StoreFile), kv.BoltOptions{})
	if err != nil {
		return nil, err
	}
	return store, nil
}

// Node is one process of a control plane.
type Node struct {
	cfg       Config
	store     kv.Portable
	service   *control.Service
	relay     *relay.Relay
	admin     *admin.Socket // nil without a data directory
	acme      *acme         // nil without
	smtp      *mail.SMTP    // nil where mails are kept
	kept      *mail.Outbox  // nil where they are delivered
	outbox    *outboxFiles  // nil without
	listeners []net.Listener
	metrics   net.Listener // nil without
	peers     net.Listener // nil without
	health    *health
}

// Open opens the node: after it, connections are accepted by the system and
// answered once Run is called. The errors are sentences for the operator.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg}
	if err := n.open(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) open(ctx context.Context) (err error) {
	if n.store, err = OpenStore(ctx, n.cfg.DataDir, n.cfg.Postgres); err != nil {
		return err
	}
	if err := n.listen(); err != nil {
		return err
	}
	return n.build()
}

func (n *Node) listen() error {
	for _, addr := range n.cfg.Listen {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return fmt.Errorf("cannot listen on %s: %w", addr, err)
		}
		n.listeners = append(n.listeners, l)
	}
	if n.cfg.PublicPort == 0 {
		n.cfg.PublicPort = n.listeners[0].Addr().(*net.TCPAddr).Port
	}
	if err := n.listenForPeers(); err != nil {
		return err
	}
	if n.cfg.Metrics == "" {
		return nil
	}
	l, err := net.Listen("tcp", n.cfg.Metrics)
	if err != nil {
		return fmt.Errorf("cannot listen on %s for metrics: %w", n.cfg.Metrics, err)
	}
	n.metrics = l
	return nil
}

func (n *Node) build() (err error) {
	cfg := n.cfg
	auth, rootPEM, err := n.certificates()
	if err != nil {
		return err
	}
	tunnel := cfg.TunnelAddress
	if tunnel == "" {
		tunnel = net.JoinHostPort(cfg.AuthHost, strconv.Itoa(cfg.PublicPort))
		if n.peers != nil {
			tunnel = n.listeners[0].Addr().String()
		}
	}
	here := controlapi.Relay{Address: tunnel, ServerName: cfg.AuthHost}
	queue, err := n.mail()
	if err != nil {
		return err
	}
	n.service, err = control.New(control.Config{
		Store:        n.store,
		Domain:       cfg.Domain,
		AuthHost:     cfg.AuthHost,
		PublicPort:   cfg.PublicPort,
		Mail:         queue,
		Relays:       []controlapi.Relay{here},
		RelaysFor:    n.relaysFor,
		OpenSignUp:   cfg.OpenSignUp,
		MembersEnrol: cfg.MembersEnrol,
		SharedStore:  cfg.Postgres != "",
		// Called from Run on, when there is a relay.
		OnCredentialEnded: func(computerID string) { n.relay.Kick(computerID) },
		Log:               cfg.Log.With("part", "control"),
	})
	if err != nil {
		return err
	}
	n.health = newHealth(n.store)
	if n.acme != nil {
		n.health.certified = n.acme.has.Load
	}
	count := newCounts()
	peers, err := n.relayPeers(here)
	if err != nil {
		return err
	}
	n.relay, err = relay.New(relay.Config{
		Peers:        peers,
		AuthHost:     cfg.AuthHost,
		TLS:          auth,
		Handler:      count.handler(web.New(n.service, web.Config{Log: cfg.Log.With("part", "control")})),
		Authenticate: n.service.Authenticate,
		Node:         cfg.Node,
		Grace:        cfg.Grace,
		Log:          cfg.Log.With("part", "relay"),
	})
	if err != nil {
		return err
	}
	n.health.registry = newRegistry(count, n.relay, n.store, n.smtp)
	administration, err := admin.New(admin.Config{
		Service: n.service,
		Store:   n.store,
		Naming:  cfg.Naming,
		Outbox:  n.kept,
		RootPEM: rootPEM,
		Files:   CAFiles(cfg.DataDir),
		Log:     cfg.Log.With("part", "admin"),
	})
	if err != nil || cfg.DataDir == "" {
		return err
	}
	n.admin, err = administration.Listen(cfg.DataDir)
	return err
}

// certificates is the auth host's TLS, and the root to trust when it is our own.
func (n *Node) certificates() (*tls.Config, []byte, error) {
	switch n.cfg.TLS {
	case TLSFiles:
		c, err := fromFiles(n.cfg.CertFile, n.cfg.KeyFile, n.cfg.AuthHost, n.cfg.Log)
		if err != nil {
			return nil, nil, err
		}
		return c.config(), nil, nil
	case TLSACME:
		n.acme = &acme{
			host: n.cfg.AuthHost, dir: ACMEDir(n.cfg.DataDir), directory: n.cfg.ACMEDirectory,
			log: n.cfg.Log.With("part", "certs"), ready: make(chan struct{}),
		}
		return n.acme.config(), nil, nil
	}
	ca, err := localca.Open(CADir(n.cfg.DataDir), localca.Options{
		Names: []string{n.cfg.AuthHost},
		Log:   n.cfg.Log.With("part", "certs"),
	})
	if err != nil {
		return nil, nil, err
	}
	c, err := fromAuthority(ca, n.cfg.AuthHost, n.cfg.Log)
	if err != nil {
		return nil, nil, err
	}
	return c.config(), ca.RootPEM(), nil
}

// Addrs are the addresses of the relay, and Metrics that of the metrics, or "".
func (n *Node) Addrs() (relay []string, metrics string) {
	for _, l := range n.listeners {
		relay = append(relay, l.Addr().String())
	}
	if n.metrics != nil {
		metrics = n.metrics.Addr().String()
	}
	return relay, metrics
}

// AuthURL is where people and agents find the control plane.
func (n *Node) AuthURL() string { return n.service.AuthURL() }

// Run serves until ctx is done, drains, and closes the node, which cannot be run
// again. It returns nil after ctx has ended.
//
// The parts end one after another, each when nobody needs it any longer: those
// who bring work before those who do it, and who is asked how it goes last.
func (n *Node) Run(ctx context.Context) error {
	over, end := context.WithCancel(ctx) // also when a part fails
	defer end()
	var stops []func() error
	start := func(part func(context.Context) error) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		ended := make(chan error, 1)
		go func() {
			defer end()
			ended <- part(ctx)
		}()
		stops = append(stops, func() error { cancel(); return <-ended })
	}
	start(func(ctx context.Context) error { return n.relay.Serve(ctx, n.listeners...) })
	if n.acme != nil {
		start(n.acme.run)
	}
	if n.admin != nil {
		start(n.admin.Run)
	}
	start(n.service.Run)
	if n.outbox != nil {
		start(n.outbox.run)
	}
	if n.metrics != nil {
		start(func(ctx context.Context) error { return n.health.serve(ctx, n.metrics, n.cfg.Log) })
	}

	<-over.Done()
	n.health.draining.Store(true)
	if ctx.Err() != nil && n.cfg.DrainWait > 0 {
		n.cfg.Log.Info("not ready any more; connections are still taken for a while", "wait", n.cfg.DrainWait.String())
		time.Sleep(n.cfg.DrainWait) // a second signal ends the program
	}
	n.cfg.Log.Info("finishing what is under way", "grace", n.cfg.Grace.String())
	n.service.Drain()
	var errs []error
	for _, stop := range stops {
		errs = append(errs, stop())
	}
	return errors.Join(append(errs, n.Close())...)
}

// Close gives back what Open opened, for a node that is not run.
func (n *Node) Close() error {
	for _, l := range n.listeners {
		_ = l.Close() // Run has closed them already
	}
	for _, l := range []net.Listener{n.metrics, n.peers} {
		if l != nil {
			_ = l.Close()
		}
	}
	var errs []error
	if n.admin != nil {
		errs = append(errs, n.admin.Close())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(errs...)
}

// Package serve is one node of a control plane for many: store, domain, pages,
// relay, administration and metrics, wired together.
//
// Open checks the configuration and opens what can fail (the store, the
// certificates, the listeners), Run serves until its context ends, and then
// drains: /livez and /readyz turn to 503, waiting syncs are answered, agents are told to go
// elsewhere, what is under way may finish within the grace, and the mails of what
// was answered are written.
//
// With a data directory the rows are in one file there, for one node. With
// PostgreSQL any number of nodes share them; a data directory may be given as
// well, and then holds the administration's socket and the internal authority.
package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/audit"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/control/news"
	"porchlight/control/provider"
	"porchlight/control/relay"
	"porchlight/control/relay/peers"
	"porchlight/control/wiring"
	"porchlight/control/zone"
	"porchlight/internal/filelimit"
	"porchlight/internal/localca"
	"porchlight/internal/socket"
)

// Node is one process of a control plane.
type Node struct {
	cfg       Config
	store     kv.Store
	service   *control.Service
	relay     *relay.Relay
	admin     *admin.Socket // nil without a data directory
	acme      *acme         // nil without
	smtp      *mail.SMTP    // nil where mails are kept
	outbox    *outboxFiles  // nil without
	audit     *audit.Log
	listeners []net.Listener
	metrics   net.Listener // nil without
	admins    net.Listener // of AdminAddress; nil without
	refused   prometheus.Counter
	pages     http.Handler // what it answers
	pagesTLS  *tls.Config
	dns       *zone.Server // nil without
	peers     net.Listener // nil without
	news      *news.News   // nil without peers
	install   *os.Root     // nil without
	health    *health
	certEnds  func() time.Time // when the auth host's certificate ends; zero: there is none yet
}

// Open opens the node: after it, connections are accepted by the system and
// answered once Run is called. The errors are sentences for the operator.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	if err := notAnAgents(cfg.DataDir); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg}
	if err := n.open(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// open listens before it makes a store, so that a port that is taken leaves
// nothing behind. A database elsewhere comes first: it may be waited for, and who
// connects meanwhile should be refused rather than kept waiting.
func (n *Node) open(ctx context.Context) (err error) {
	if kv.Shared(n.cfg.StoreURL()) {
		if err := n.openStore(ctx); err != nil {
			return err
		}
	}
	if err := n.listen(ctx); err != nil {
		return cmp.Or(n.storeInUse(ctx), err)
	}
	if n.store == nil {
		if err := n.openStore(ctx); err != nil {
			return err
		}
	}
	if err := n.openAudit(); err != nil {
		return err
	}
	return n.build(ctx)
}

// storeInUse is the error of a store that another process holds, and nil
// otherwise. A second server of one directory usually finds its port taken too,
// and that it is the second is what its operator has to read. Only the lock is asked
// about: a program that does not start must not bring the rows up to date.
func (n *Node) storeInUse(ctx context.Context) error {
	if n.store != nil {
		return nil // a database, which many share
	}
	err := kv.Look(ctx, n.cfg.StoreURL(), kv.Options{}, func(kv.Tx) error { return nil })
	if errors.Is(err, kv.ErrInUse) {
		return err
	}
	return nil // also where there is no store: why it cannot listen is what to say
}

// openStore waits for a database that is on its way.
func (n *Node) openStore(ctx context.Context) (err error) {
	n.store, err = kv.Open(ctx, n.cfg.StoreURL(), kv.Options{
		Wait:         n.cfg.PostgresWait,
		ClockChanged: n.clockChanged,
		Waiting: func(cause error, pause time.Duration) {
			if errors.Is(cause, kv.ErrMigrating) {
				n.cfg.Log.Info("waiting until the rows are up to date", "why", cause.Error())
				return
			}
			n.cfg.Log.Warn("the database does not answer yet; waiting for it", "err", cause, "again_in", pause.Round(time.Millisecond).String())
		},
	})
	return err
}

func (n *Node) clockChanged(was, is time.Duration) {
	before := was.Round(time.Second).String()
	if is == 0 {
		n.cfg.Log.Info("this machine's clock is that of the database again", "database_was_ahead", before)
		return
	}
	n.cfg.Log.Warn("this machine's clock is not that of the database, by which all nodes go: set it, and keep it set (NTP)",
		"database_ahead", is.Round(time.Second).String(), "before", before)
}

func (n *Node) listen(ctx context.Context) error {
	for _, addr := range n.cfg.Listen {
		l, err := relay.Listen(ctx, addr)
		if err != nil {
			return cannotListen(addr, "--listen", err)
		}
		n.listeners = append(n.listeners, l)
	}
	if n.cfg.PublicPort == 0 {
		n.cfg.PublicPort = n.listeners[0].Addr().(*net.TCPAddr).Port
	}
	if err := n.listenForPeers(ctx); err != nil {
		return err
	}
	if err := n.listenForAdmins(ctx); err != nil {
		return err
	}
	if n.cfg.Metrics == "" {
		return nil
	}
	l, err := net.Listen("tcp", n.cfg.Metrics)
	if err != nil {
		return cannotListen(n.cfg.Metrics, "--metrics", err)
	}
	n.metrics = l
	return nil
}

// cannotListen says what to do about the things that usually are in the way.
func cannotListen(addr, flag string, err error) error {
	switch {
	case socket.MayBeNobodys(err):
		return fmt.Errorf("cannot listen on %s: another program does, or Windows keeps the port back. Stop that program, or choose another address (%s)", addr, flag)
	case socket.InUse(err):
		return fmt.Errorf("cannot listen on %s: another program does. Stop it, or choose another address (%s)", addr, flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("cannot listen on %s: this user may not take a port this low. Give the program CAP_NET_BIND_SERVICE, or choose another address (%s)", addr, flag)
	}
	return fmt.Errorf("cannot listen on %s (%s): %w", addr, flag, err)
}

func (n *Node) build(ctx context.Context) error {
	cfg := n.cfg
	auth, rootPEM, err := n.certificates(ctx)
	if err != nil {
		return err
	}
	queue, err := n.mail()
	if err != nil {
		return err
	}
	if err := n.openInstall(); err != nil {
		return err
	}
	count := newCounts()
	n.refused = newRefused()
	parts := wiring.Config{
		Control: control.Config{
			Store:        n.store,
			Naming:       cfg.Naming,
			Mail:         queue,
			OpenSignUp:   cfg.OpenSignUp,
			UpdateNotice: cfg.updateNotice(),
			MembersEnrol: cfg.MembersEnrol,
			Resolvers:    cfg.Resolvers,
			AbuseContact: cfg.AbuseContact,
			Audit:        n.audit,
			SharedStore:  kv.Shared(cfg.StoreURL()),
			Now:          kv.Clock(n.store),
		},
		Relay: relay.Config{
			TLS:            auth,
			Node:           cfg.Node,
			Grace:          cfg.Grace,
			Limits:         cfg.Limits,
			TrustedProxies: cfg.proxies,
		},
		KeptMail: "porchlight-control outbox",
		RootPEM:  rootPEM,
		Files:    CAFiles(cfg.DataDir),
		Wrap:     count.handler,
		Log:      cfg.Log,

		SecurityContact: cfg.SecurityContact,
		Install:         n.install,
		Version:         cfg.Version,
		AdminURL:        n.AdminURL(),
		CertEnds:        n.certEnds,
		Self:            n.listeners[0].Addr().String(),
	}
	tunnel := net.JoinHostPort(cfg.AuthHost, strconv.Itoa(cfg.PublicPort))
	if n.peers != nil {
		parts.Relay.Peers = &peers.Config{Listener: n.peers, Address: cfg.PeerAddress, Version: cfg.Version, Public: cfg.publicText()}
		tunnel = n.listeners[0].Addr().String()
	}
	parts.Control.PublishDNS, parts.Control.Challenges = cfg.publishing()
	for _, p := range cfg.providers {
		parts.Control.Providers = append(parts.Control.Providers, provider.New(p, parts.Control.Now, cfg.Log))
	}
	parts.NoMail = cfg.Mail.SMTP == "" && cfg.Mail.OutboxDir == ""
	parts.Tunnel = cmp.Or(cfg.TunnelAddress, tunnel)
	run := n.joinNews(&parts)
	plane, err := wiring.Build(parts)
	if err != nil {
		return err
	}
	n.service, n.relay = plane.Service, plane.Relay
	n.pages, n.pagesTLS = plane.AdminPages, auth
	if err := n.listenForNews(run); err != nil {
		return err
	}
	if err := n.listenForDNS(); err != nil {
		return err
	}
	n.health = &health{store: n.store, registry: newRegistry(count, n.relay, n.store, n.smtp, n.certEnds), nobody: n.relay.ServesNobody}
	if n.admins != nil {
		n.health.registry.MustRegister(n.refused)
	}
	if n.acme != nil {
		n.health.certified = n.acme.has.Load
	}
	if cfg.DataDir != "" {
		n.admin, err = plane.Admin.Listen(cfg.DataDir)
	}
	return err
}

// certificates is the auth host's TLS, and the root to trust when it is our own.
func (n *Node) certificates(ctx context.Context) (*tls.Config, []byte, error) {
	switch n.cfg.TLS {
	case TLSFiles:
		c, err := fromFiles(n.cfg.CertFile, n.cfg.KeyFile, n.cfg.AuthHost, n.cfg.Log)
		if err != nil {
			return nil, nil, err
		}
		n.certEnds = c.ends
		return c.config(), nil, nil
	case TLSACME:
		if err := n.openACME(ctx); err != nil {
			return nil, nil, err
		}
		n.certEnds = n.acme.ends
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
	n.certEnds = c.ends
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

// DNSAddr is where it answers DNS, or "".
func (n *Node) DNSAddr() string {
	if n.dns == nil {
		return ""
	}
	return n.dns.Addr()
}

// AuthURL is where people and agents find the control plane.
func (n *Node) AuthURL() string { return n.service.AuthURL() }

// Run serves until ctx is done, drains, and closes the node, which cannot be run
// again. It returns nil after ctx has ended.
//
// The parts end one after another, each when nobody needs it any longer: those
// who bring work before those who do it, and who is asked how it goes last.
func (n *Node) Run(ctx context.Context) error {
	life, end := context.WithCancel(ctx) // also when a part fails
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
	// own is for what the node does of its own accord, and waits for nobody's request.
	own := func(part func(context.Context) error) {
		start(func(ctx context.Context) error { return part(kv.First(ctx)) })
	}
	n.warnOfNeighbours()
	if _, known := kv.ClockAhead(n.store); !known {
		n.cfg.Log.Warn("the database does not tell its time; this node goes by its machine's clock until it does: keep that set (NTP)")
	}
	limits := n.cfg.Limits.WithDefaults()
	n.cfg.Log.Info("limits", "open_files", filelimit.Limit(), "computers", limits.Tunnels, "visitors", limits.Visitors, "postgres_connections", n.connections())
	start(func(ctx context.Context) error { return n.relay.Serve(ctx, n.listeners...) })
	if n.acme != nil {
		own(n.acme.run)
	}
	if n.admin != nil {
		start(n.admin.Run)
	}
	if n.admins != nil {
		start(n.serveAdmins)
	}
	own(n.service.Run)
	if n.news != nil { // until nobody has anything to tell
		start(n.news.Run)
	}
	if n.outbox != nil {
		own(n.outbox.run)
	}
	own(n.audit.Run) // until nothing happens any more
	if n.dns != nil {
		start(n.dns.Run)
	}
	if n.metrics != nil {
		start(func(ctx context.Context) error { return n.health.serve(ctx, n.metrics, n.cfg.Log) })
	}

	<-life.Done()
	n.health.draining.Store(true)
	n.relay.Leave()
	if ctx.Err() != nil && n.cfg.DrainWait > 0 {
		n.cfg.Log.Info("not ready any more; connections are still taken for a while", "wait", n.cfg.DrainWait.String())
		time.Sleep(n.cfg.DrainWait) // a second signal ends the program
	}
	n.cfg.Log.Info("finishing what is under way", "grace", n.cfg.Grace.String())
	n.service.Feed.Drain()
	var errs []error
	for _, stop := range stops {
		errs = append(errs, stop())
	}
	return errors.Join(append(errs, n.Close())...)
}

// connections is how many this node may have to PostgreSQL; none where the store is a
// file.
func (n *Node) connections() int {
	if p, ok := n.store.(pool); ok {
		_, _, most := p.Connections()
		return most
	}
	return 0
}

// Close gives back what Open opened, for a node that is not run.
func (n *Node) Close() error {
	for _, l := range n.listeners {
		_ = l.Close() // Run has closed them already
	}
	for _, l := range []net.Listener{n.metrics, n.peers, n.admins} {
		if l != nil {
			_ = l.Close()
		}
	}
	var errs []error
	if n.install != nil {
		errs = append(errs, n.install.Close())
	}
	if n.dns != nil {
		_ = n.dns.Close() // Run has closed it already
	}
	if n.news != nil {
		errs = append(errs, n.news.Close())
	}
	if n.admin != nil {
		errs = append(errs, n.admin.Close())
	}
	if n.acme != nil && n.acme.shared != nil {
		errs = append(errs, n.acme.shared.Close())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(errs...)
}

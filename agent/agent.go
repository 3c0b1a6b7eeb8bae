// Package agent is what runs on the owner's computer: the loopback API that apps
// ask to be published, the proxy that visitors reach through the tunnel, and
// what keeps both in step with the control plane.
//
// New opens the data directory and the loopback listeners, Run serves until its
// context ends. The parts know nothing of each other; this package wires them:
//
//	localapi → engine (published apps) ─┐
//	localapi → people → access (who may)┼→ one state for the owner
//	tunnel → proxy → access ────────────┤
//	remote (held sync) → access ────────┘
package agent

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/certs"
	"porchlight/agent/engine"
	"porchlight/agent/localapi"
	"porchlight/agent/people"
	"porchlight/agent/procinfo"
	"porchlight/agent/proxy"
	"porchlight/agent/remote"
	"porchlight/agent/rules"
	"porchlight/agent/store"
	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
)

// Agent is made by New. Its methods are safe for concurrent use.
type Agent struct {
	cfg   Config
	log   *slog.Logger
	store *store.Store

	apps    *engine.Apps
	reg     *engine.Registry
	access  *access.Access
	rules   *rules.Rules
	people  *people.People
	proxy   *proxy.Proxy
	api     *localapi.API
	client  *controlapi.Client // nil when there is no link
	remote  *remote.Remote     // nil when there is no link
	tunnel  *tunnel.Tunnel     // nil when there is no link
	changes broadcast.Signal

	ownerHash atomic.Pointer[[]byte] // never nil; see SetOwnerSecretHash

	certs         certs.Reporter
	acme          *certs.ACME // nil where certificates are not ordered
	listeners     *Listeners
	ownsListeners bool          // nobody else keeps them
	ownPorts      []int         // that no app may be served from
	ready         chan struct{} // see Ready
}

// New opens the data directory and listens; it serves nothing before Run. The
// errors are sentences for the owner. Call Close when Run is not going to be
// called.
func New(cfg Config) (_ *Agent, err error) {
	a := &Agent{cfg: cfg, log: cfg.Log.With("part", "agent"), ready: make(chan struct{})}
	a.ownerHash.Store(&cfg.OwnerSecretHash)
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if a.store, err = store.Open(cfg.DataDir); err != nil {
		return nil, err
	}
	if err := a.store.BecomeComputer(cfg.ComputerID); err != nil {
		return nil, err
	}
	if a.listeners = cfg.Listeners; a.listeners == nil {
		a.listeners, a.ownsListeners = NewListeners(cfg.DataDir, cfg.API), true
	}
	if err := a.listeners.listen(); err != nil {
		return nil, err
	}
	a.ownPorts = append([]int{portOf(a.listeners.API())}, cfg.OwnPorts...)
	a.access, err = access.New(access.Config{
		Store:         a.store,
		Now:           cfg.Now,
		ClientName:    a.clientName,
		Log:           cfg.Log.With("part", "access"),
		OnConnections: a.changes.Raise,
	})
	if err != nil {
		return nil, err
	}
	if err := a.makeEngine(); err != nil {
		return nil, err
	}
	if err := a.makeProxy(); err != nil {
		return nil, err
	}
	if err := a.makeLink(); err != nil {
		return nil, err
	}
	a.reg = engine.NewRegistry(engine.RegistryConfig{
		Grace:       cfg.Grace,
		FirstWithin: cfg.FirstWithin,
		Log:         cfg.Log.With("part", "engine"),
	})
	if err := a.makeRules(); err != nil {
		return nil, err
	}
	if err := a.makePeople(); err != nil {
		return nil, err
	}
	a.api = localapi.New(localapi.Config{
		Apps:            a.apps,
		Registry:        a.reg,
		Backend:         (*backend)(a),
		Rules:           a.rules,
		People:          a.people,
		OwnerSecretHash: func() []byte { return *a.ownerHash.Load() },
		DeskSecretHash:  cfg.DeskSecretHash,
		Connector:       cfg.Connector,
		Log:             cfg.Log.With("part", "api"),
	})
	return a, nil
}

func (a *Agent) makeEngine() (err error) {
	a.apps, err = engine.NewApps(engine.AppsConfig{
		Store: a.store,
		Root: func() engine.Root {
			c := a.computer()
			return engine.Root{Name: c.Name, Host: c.Host}
		},
		OwnPorts:     func() []int { return a.ownPorts },
		AskAgain:     func() bool { return a.rules.Settings().AskAgain },
		Listener:     listener,
		ListenerUser: listenerUser,
		Answers:      answers,
		Listens:      listens,
		Own:          func(user string) bool { return procinfo.Own(user) || a.rules.EverybodyTrusted() },
		UserName:     procinfo.UserName,
		Me:           me(),
		Certificate:  a.certificate,
		OnLive:       a.announce,
		OnGone: func(appID string) agentapi.Closed {
			return agentapi.Closed{OK: true, Closed: a.access.CloseApp(appID)}
		},
		Log: a.cfg.Log.With("part", "engine"),
	})
	return err
}

func (a *Agent) makeProxy() error {
	instance, err := a.store.Instance()
	if err != nil {
		return err
	}
	a.certs = a.makeCertificates()
	a.proxy, err = proxy.New(proxy.Config{
		Apps:      appLookup{a},
		Access:    a.access,
		Root:      func() proxy.Root { c := a.computer(); return proxy.Root{Name: c.Name, Host: c.Host} },
		AuthURL:   a.authURL,
		Redeem:    a.redeem,
		TLS:       certs.TLSConfig(a.certs),
		Instance:  instance.ID,
		Key:       instance.Key,
		Local:     a.local(),
		List:      a.liveApps,
		Bearer:    access.NewBearer(a.access),
		Listener:  func(app proxy.App) bool { return a.apps.Welcomes(app.Name, app.Port) },
		OnAppDown: func(appID string) { a.apps.SetAnswering(appID, false) },
		OnAppUp:   func(appID string) { a.apps.SetAnswering(appID, true) },
		Log:       a.cfg.Log.With("part", "proxy"),
	})
	return err
}

func (a *Agent) makeLink() (err error) {
	link := a.cfg.Link
	if link == nil {
		return nil
	}
	a.client = &controlapi.Client{
		BaseURL:    link.AuthURL,
		Credential: link.Credential,
		HTTP:       &http.Client{Transport: link.transport()},
		OnClock:    a.access.SetClockAhead,
	}
	changed, _ := a.apps.Subscribe()
	a.remote = remote.New(remote.Config{
		Control:     a.client,
		Apps:        a.approvedApps,
		AppsChanged: changed,
		OnSnapshot:  a.takeSnapshot,
		OnContact:   func() { a.access.Touch(); a.people.Synced() },
		OnChange:    a.connectionChanged,
		Log:         a.cfg.Log.With("part", "remote"),
	})
	a.tunnel, err = tunnel.New(tunnel.Config{
		Relays:     func() []controlapi.Relay { return a.access.Snapshot().Relays },
		Credential: func() string { return link.Credential },
		RootCAs:    link.RootCAs,
		Log:        a.cfg.Log.With("part", "tunnel"),
	})
	return err
}

// Run serves until ctx ends or a part fails, and closes everything. It writes
// DATA/agent.json while it serves and returns nil when ctx ended.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.listeners.announce(); err != nil {
		return errors.Join(err, a.Close())
	}
	a.log.Info("agent is up", "api", a.API(), "data", a.cfg.DataDir)
	open, owner := a.listeners.lease()

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.awaitReady(ctx) })
	g.Go(func() error { return a.access.Run(ctx) })
	g.Go(func() error { return a.reg.Run(ctx) })
	g.Go(func() error { return a.apps.Run(ctx) })
	g.Go(func() error { return a.people.Run(ctx) })
	g.Go(func() error { return a.api.Serve(ctx, open, owner) })
	if a.cfg.Connector != nil {
		g.Go(func() error { return a.watchConnector(ctx) })
	}
	if a.acme != nil {
		g.Go(func() error { return a.orderCertificates(ctx) })
	}
	if a.tunnel != nil {
		g.Go(func() error { return a.remote.Run(ctx) })
		g.Go(func() error { return a.tunnel.Run(ctx) })
		g.Go(func() error { return a.watchTunnel(ctx) })
		g.Go(func() error { return watchSleep(ctx, ownClocks, a.woke) })
		g.Go(func() error { return a.proxy.Serve(ctx, a.tunnel.Listener()) })
	}
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	err = errors.Join(err, a.Close())
	a.log.Info("agent is down")
	return err
}

// Close releases the data directory and the listeners. Run does it by itself.
func (a *Agent) Close() error {
	var errs []error
	if a.ownsListeners {
		errs = append(errs, a.listeners.Close())
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}

// SetOwnerSecretHash is for an owner secret that became known while the agent ran,
// because the keychain was locked before.
func (a *Agent) SetOwnerSecretHash(hash []byte) {
	a.ownerHash.Store(&hash)
	a.changes.Raise()
}

// Ready is closed once everything is there for visitors: the control plane has
// said who may come and a relay sends them. Without a link it is closed when the
// loopback API is up.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

func (a *Agent) awaitReady(ctx context.Context) error {
	changed, cancel := a.changes.Subscribe()
	defer cancel()
	for a.remote != nil && !(a.remote.State().Connected && a.tunnel.Connected()) {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
	close(a.ready)
	return nil
}

// connectionChanged tells the owner's side at once, and again when what lasts
// counts as trouble.
func (a *Agent) connectionChanged() {
	a.changes.Raise()
	time.AfterFunc(settling, a.changes.Raise)
}

// watchTunnel has the owner's state follow the tunnel, and the sync try at once
// when the tunnel stands again: both ends were likely away for the same reason.
// A snapshot that came through wakes the tunnel in turn.
func (a *Agent) watchTunnel(ctx context.Context) error {
	for {
		changed := a.tunnel.Changes()
		a.connectionChanged()
		if state := a.remote.State(); a.tunnel.Connected() && !state.Connected && !state.Refused {
			a.remote.Wake()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Idle is closed when nothing was attached to the engine for Config.Grace; never
// without one. Whoever runs the agent stops it then.
func (a *Agent) Idle() <-chan struct{} { return a.reg.Idle() }

// API is the address of the loopback API, host and port.
func (a *Agent) API() string { return a.listeners.API() }

// OwnerSocket is the path of the owner tier's unix socket.
func (a *Agent) OwnerSocket() string { return a.listeners.OwnerSocket() }

func (a *Agent) local() bool { return a.cfg.Link != nil && a.cfg.Link.Local }

func (a *Agent) authURL() string {
	if a.cfg.Link == nil {
		return ""
	}
	return a.cfg.Link.AuthURL
}

// computer is what the last snapshot says of this computer, across restarts.
func (a *Agent) computer() controlapi.Computer { return a.access.Snapshot().Computer }

// takeSnapshot swaps who may open what and has the tunnel look at the relays.
func (a *Agent) takeSnapshot(snapshot controlapi.Snapshot) {
	before := a.access.Snapshot()
	if closed := a.access.SetSnapshot(snapshot); closed > 0 {
		a.log.Info("access ended elsewhere", "connections_closed", closed)
	}
	if a.computer() != before.Computer {
		a.log.Info("this computer's address", "url", a.computer().URL)
	}
	a.tellAccepted(before, snapshot)
	a.people.Synced()
	a.tunnel.Wake()
	a.changes.Raise()
}

// Account is whose computer this is.
func (a *Agent) Account() agentapi.Account {
	c := a.computer()
	owner, known := a.access.Owner()
	return agentapi.Account{
		Connected: known && a.remote != nil && !a.remote.State().Refused,
		Email:     owner.Email,
		AccountID: owner.AccountID,
		Name:      c.Name,
		Host:      c.Host,
		URL:       c.URL,
		AuthURL:   a.authURL(),
		Local:     a.local(),
	}
}

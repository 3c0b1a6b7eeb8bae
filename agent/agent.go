// Package agent is what runs on the owner's computer: the loopback API that apps
// ask to be published, the proxy that visitors reach through the tunnel, and
// what keeps both in step with the control plane.
//
// New opens the data directory, Run serves until its context ends. The server of
// the loopback API is not the agent's: it stays while one agent is replaced by
// another. The parts know nothing of each other; this package wires them:
//
//	localapi → engine (published apps) ─┐
//	localapi → people → access (who may)┼→ one state for the owner
//	tunnel → proxy → access ────────────┤
//	remote (sync) → access ─────────────┘
package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/certs"
	"porchlight/agent/containers"
	"porchlight/agent/devices"
	"porchlight/agent/engine"
	"porchlight/agent/health"
	"porchlight/agent/identity"
	"porchlight/agent/listening"
	"porchlight/agent/localapi"
	"porchlight/agent/openlink"
	"porchlight/agent/people"
	"porchlight/agent/procinfo"
	"porchlight/agent/proxy"
	"porchlight/agent/remote"
	"porchlight/agent/requests"
	"porchlight/agent/senders"
	"porchlight/agent/settings"
	"porchlight/agent/sleep"
	"porchlight/agent/store"
	"porchlight/agent/tunnel"
	"porchlight/agent/update"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/internal/words"
)

// Agent is made by New. Its methods are safe for concurrent use.
type Agent struct {
	cfg   Config
	log   *slog.Logger
	store *store.Store

	changes    *broadcast.Signal // the server's, which outlives the agent
	unfollow   func()            // ends what remote learns by changes; nil without a control plane
	settings   *settings.Settings
	containers *containers.Containers
	requests   *requests.Log
	activity   *activity.Log
	access     *access.Access
	apps       *engine.Apps
	users      *engine.Users
	health     *health.Health
	client     *controlapi.Client // nil without a control plane
	tunnel     *tunnel.Tunnel     // nil without a control plane
	remote     *remote.Remote     // nil without a control plane
	people     *people.People
	listening  *listening.Listening
	update     *update.Checker
	identity   *identity.Signer
	senders    *senders.Senders
	devices    *devices.Devices
	proxy      *proxy.Proxy
	api        *localapi.API

	certs     certs.Reporter
	names     certs.Names
	acme      *certs.ACME      // nil where certificates are not ordered
	certified broadcast.Signal // how a certificate that is ordered is has changed
	ownPorts  []int            // that no app may be served from
	ready     chan struct{}    // see Ready
}

// New opens the data directory and has the server listen; it starts nothing, see
// Run. The errors are sentences for the owner. Call Close when Run is not going to
// be called.
//
// The parts are made in one order, in which each needs only those before it. What an
// earlier one has to learn of a later one, it learns by a.changes; what it has to call of
// one is in later.go, and nowhere else.
func New(cfg Config) (*Agent, error) {
	a := &Agent{cfg: cfg, log: cfg.Log.With("part", "agent"), changes: cfg.Server.Changes(), ready: make(chan struct{})}
	for _, step := range []func() error{
		a.openStore, a.listen, a.makeAccess, a.makeContainers, a.makeEngine, a.makeHealth, a.makeConnection, a.makePeople, a.makeListening, a.makeUpdate, a.makeProxy,
	} {
		if err := step(); err != nil {
			return nil, errors.Join(a.sentence(err), a.Close())
		}
	}
	a.makeAPI()
	return a, nil
}

// sentence is an error of New for the owner. What is none yet comes from what is kept,
// which a part could not read.
func (a *Agent) sentence(err error) error {
	if _, ok := errors.AsType[*words.Failure](err); ok {
		return err
	}
	return words.Errorf("cannot read what is kept in %s: %w", a.cfg.DataDir, err)
}

func (a *Agent) openStore() (err error) {
	if a.store, err = store.Open(a.cfg.DataDir); err != nil {
		return err
	}
	return a.store.BecomeComputer(a.cfg.ComputerID)
}

func (a *Agent) listen() error {
	if err := a.cfg.Server.Listen(); err != nil {
		return err
	}
	a.ownPorts = append([]int{portOf(a.cfg.Server.Addr())}, a.cfg.OwnPorts...)
	return nil
}

func (a *Agent) makeAccess() (err error) {
	a.activity = activity.New(activity.Config{
		Store:        a.store,
		Changes:      a.changes,
		Now:          a.cfg.Now,
		OnFirstVisit: a.tellFirstVisit,
		Owner:        a.ownersAddress,
		Log:          a.cfg.Log.With("part", "activity"),
	})
	if a.settings, err = settings.New(a.store, a.changes, func() {
		a.activity.Add(agentapi.Activity{Kind: agentapi.ActivitySettings, Owner: true})
	}); err != nil {
		return err
	}
	a.access, err = access.New(access.Config{
		Store:    a.store,
		Settings: a.settings,
		Changes:  a.changes,
		Now:      a.cfg.Now,
		Activity: a.activity,
		Log:      a.cfg.Log.With("part", "access"),
	})
	a.devices = devices.New(a.access, a.store, a.cfg.Now)
	return err
}

func (a *Agent) makeEngine() (err error) {
	a.apps, err = engine.NewApps(engine.AppsConfig{
		Store:        a.store,
		Root:         a.root,
		OwnPorts:     a.ownPorts,
		AskAgain:     func() bool { return a.settings.Get().AskAgain },
		Listener:     listener,
		Container:    a.containerAt,
		ListenerUser: listenerUser,
		Answers:      answers,
		Listens:      listens,
		Network:      listening.Network,
		Own:          func(user string) bool { return procinfo.Own(user) || a.settings.Get().TrustEverybody },
		UserName:     procinfo.UserName,
		Me:           me(),
		OnGone:       a.gone,
		OnReached:    a.reached,
		Happened:     a.activity.Add,
		OnListening:  a.looked,
		Changes:      a.changes,
		Now:          a.cfg.Now,
		Log:          a.cfg.Log.With("part", "engine"),
	})
	if err != nil {
		return err
	}
	a.requests = requests.New(func() bool { return a.settings.Get().Requests }, a.apps.Has)
	if a.users, err = engine.NewUsers(a.store, a.apps, a.cfg.Server.Registry()); err != nil {
		return err
	}
	a.senders, err = senders.New(senders.Config{
		Store:    a.store,
		Access:   a.access,
		Activity: a.activity,
		Apps:     a.apps,
		Note:     a.apps.Note,
		Changes:  a.changes,
		Now:      a.cfg.Now,
		Log:      a.cfg.Log.With("part", "senders"),
	})
	return err
}

func (a *Agent) displayName() string { return a.settings.Get().DisplayName }

func (a *Agent) tellsOff() bool { return a.settings.Get().TellOff }

func (a *Agent) makePeople() (err error) {
	cfg := people.Config{
		Apps:     a.apps,
		Access:   a.access,
		Activity: a.activity,
		Store:    a.store,
		Devices:  a.devices,
		Changes:  a.changes,
		Log:      a.cfg.Log.With("part", "people"),

		DisplayName: a.displayName,
		Language:    a.settings.Language,
		OwnClients:  a.cfg.OwnClients,
	}
	if a.cfg.ACME != nil {
		cfg.Authority = certs.CAAName(a.cfg.ACME.Directory)
	}
	switch {
	case a.local():
		cfg.NoDomains = words.Of("A domain of your own needs a server: what leads to this computer alone, nobody elsewhere can open.")
	case a.client != nil && a.cfg.ACME == nil:
		cfg.NoDomains = words.Of("This computer makes its certificates itself, so it has no domains of your own. Connect it with an authority (--acme-directory).")
	}
	if a.cfg.ComputerID != "" {
		cfg.NoControl = a.cfg.NoControlPlane
	}
	if a.client != nil {
		cfg.Control = a.client
		cfg.Report = a.remote.Report
		cfg.Away = func() bool { return !a.remote.State().Connected }
		cfg.Refused = func() bool { return a.remote.State().Refused }
	}
	a.people, err = people.New(cfg)
	return err
}

func (a *Agent) makeUpdate() (err error) {
	a.update, err = update.New(update.Config{
		Chosen:  func() update.Choice { return update.Choose(a.settings.Update(), a.access.Snapshot().UpdateNotice) },
		Load:    func() (kept update.Kept, err error) { err = a.store.Update(&kept); return kept, err },
		Save:    func(kept update.Kept) error { return a.store.SaveUpdate(kept) },
		Version: Version,
		Changes: a.changes,
		Now:     time.Now,
		Log:     a.cfg.Log.With("part", "update"),
	})
	return err
}

func (a *Agent) makeProxy() error {
	instance, err := a.store.Instance()
	if err != nil {
		return err
	}
	a.certs, a.identity = a.makeCertificates(), identity.New(a.store, time.Now)
	a.proxy, err = proxy.New(proxy.Config{
		Apps:     a.apps,
		Access:   a.access,
		Activity: a.activity,
		Root:     a.root,
		AuthURL:  a.authURL,
		Redeem:   a.redeem,
		TLS:      certs.TLSConfig(a.certs),
		Instance: instance.ID,
		Key:      instance.Key,
		Local:    a.local(),
		Public:   a.publicSince,
		List:     a.apps.List,
		ByID:     a.apps.ByID,

		DisplayName: a.displayName,
		TellOff:     a.tellsOff,

		DeviceAuthority: a.devices.Authority,
		Devices:         a.people,

		Bearer:     access.NewBearer(a.access),
		Senders:    a.senders,
		Identity:   a.identity,
		Welcomes:   a.apps.Welcomes,
		ShowedKey:  a.apps.ShowedKey,
		Elsewhere:  a.apps.Elsewhere,
		OnFailed:   a.health.Failed,
		OnAnswered: a.health.Answered,
		OnHint:     a.health.Hint,
		OnCompared: a.health.Compared,
		Requests:   a.requests,
		Log:        a.cfg.Log.With("part", "proxy"),
	})
	return err
}

func (a *Agent) makeAPI() {
	var checks *localapi.TrustChecks
	if a.local() {
		checks = &localapi.TrustChecks{Begin: a.proxy.BeginCheck, Await: a.proxy.AwaitCheck, Browser: openlink.Browser}
	}
	a.api = localapi.New(localapi.Config{
		Settings:    a.settings,
		Access:      a.access,
		Activity:    a.activity,
		Apps:        a.apps,
		Requests:    a.requests,
		Health:      a.health,
		Identity:    a.identity,
		Senders:     a.senders,
		Listening:   a.listening,
		TrustChecks: checks,
		Server:      a.cfg.Server,
		Users:       a.users,
		People:      a.people,
		Info: agentapi.EngineInfo{
			EngineVersion: Version,
			Protocol:      agentapi.Protocol,
			PID:           os.Getpid(),
			Mode:          a.cfg.Mode,
			FirstPartyApp: a.cfg.FirstPartyApp,
			Billing:       agentapi.Billing{Plan: "self-hosted", Standing: "good"},
		},
		Connection:  a.connection,
		Announce:    a.announce,
		Certificate: a.certificate,
		MakeLink:    a.proxy.OpenLink,
		Outbox:      a.cfg.Outbox,
		OutboxSize:  a.cfg.OutboxSize,
		Tries:       a.makeTries(),
		Broken:      a.proxy.Broken,
		Crowded:     a.proxy.Crowded,
		Containers:  a.containers.Trouble,
		Update:      a.update.Update,
		Log:         a.cfg.Log.With("part", "api"),
	})
}

// Run serves until ctx ends or a part fails, and closes the data directory. It
// returns nil when ctx ended.
func (a *Agent) Run(ctx context.Context) error {
	a.log.Info("agent is up", "api", a.cfg.Server.Addr(), "data", a.cfg.DataDir)
	a.apps.EndDue(ctx) // before anybody is served
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.awaitReady(ctx) })
	g.Go(func() error { return a.activity.Run(ctx) })
	g.Go(func() error { return a.access.Run(ctx) })
	g.Go(func() error { return a.apps.Run(ctx) })
	g.Go(func() error { return a.apps.AwaitEnds(ctx) })
	g.Go(func() error { return a.containers.Run(ctx) })
	g.Go(func() error { return sleep.Watch(ctx, a.woke) })
	g.Go(func() error { return a.health.Run(ctx) })
	g.Go(func() error { return a.people.Run(ctx) })
	g.Go(func() error { return a.senders.Run(ctx) })
	g.Go(func() error { return a.api.Run(ctx) })
	g.Go(func() error { return a.update.Run(ctx) })
	if a.cfg.AllowHosts != nil {
		g.Go(func() error { return a.followHosts(ctx) })
	}
	if a.cfg.Mode == agentapi.ModeDesktop {
		// Its menu asked with who is cut off by it, so nobody's visit is waited for.
		g.Go(func() error { <-ctx.Done(); a.EndVisits(); return nil })
	}
	if a.acme != nil {
		g.Go(func() error { return a.orderCertificates(ctx) })
		g.Go(func() error { return a.watchCertificates(ctx) })
	}
	if a.tunnel != nil {
		g.Go(func() error { return a.remote.Run(ctx) })
		g.Go(func() error { return a.tunnel.Run(ctx) })
		g.Go(func() error { return a.watchTunnel(ctx) })
		g.Go(func() error { return a.watchServer(ctx) })
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

// Close releases the data directory. Run does it by itself.
func (a *Agent) Close() error {
	if a.unfollow != nil {
		a.unfollow()
	}
	if a.client != nil {
		a.client.HTTP.CloseIdleConnections() // a local control plane waits for them when it ends
	}
	if a.store == nil {
		return nil
	}
	return a.store.Close()
}

// Ready is closed once everything is there for visitors: the control plane has
// said who may come and a relay sends them. Without a control plane it is closed at once.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

// followHosts has the control plane of this computer allow the hosts of the settings.
func (a *Agent) followHosts(ctx context.Context) error {
	changed, cancel := a.changes.Subscribe()
	defer cancel()
	const tryAgain = time.Minute
	for last, known := []string(nil), false; ; {
		var again <-chan time.Time
		if hosts := a.settings.Get().ClientHosts; !known || !slices.Equal(hosts, last) {
			err := a.cfg.AllowHosts(ctx, hosts)
			if known = err == nil; known {
				last = hosts
			} else if ctx.Err() == nil {
				a.log.Warn("the hosts whose clients may ask could not be set", "err", err)
				again = time.After(tryAgain) // one that was taken away ends, whatever else happens
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again:
		}
	}
}

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

// Package host runs the agent of one data directory for as long as its process
// lives, whichever control plane this computer is connected to meanwhile.
//
// A computer is on its own (local: control plane and relay in this process), or
// connected to a control plane elsewhere, or neither yet. Which one is in
// DATA/connection.json. Connecting and disconnecting change that file in one
// step; the agent is then stopped and another one made behind the same server of the
// loopback API, so that those who call meanwhile only wait.
//
//	host.go       New and Run, the loop that replaces one agent by another
//	run.go        making an agent: local, connected, unconnected
//	connection.go DATA/connection.json
//	connect.go    the owner connects and disconnects
//	ending.go     telling a control plane that this computer is gone
//	running.go    finding a Porchlight that runs already
package host

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/localapi"
	"porchlight/agent/ownersecret"
	"porchlight/internal/broadcast"
	"porchlight/internal/private"
	"porchlight/internal/words"
)

const (
	// graceAfterLast is how long an engine that stops on demand outlives its
	// last registrant, and firstWithin how long it waits for the first: the
	// program that started it may take a while to come up.
	graceAfterLast = 10 * time.Second
	firstWithin    = time.Minute

	// drain is how long an agent may take to finish what is under way.
	drain = 15 * time.Second
)

// Config of New. DataDir, API and Log are required.
type Config struct {
	DataDir string
	API     string // loopback API; port 0 picks one
	// Local has this computer be on its own while it is not connected; otherwise
	// it is nobody then. HTTPS is where its own relay listens, see local.Config.
	Local bool
	HTTPS string
	// ControlURL is the one control plane this computer may be connected to;
	// empty for any.
	ControlURL string
	// CA (PEM) and ACMEDirectory are used for connections that name none; see
	// agentapi.ConnectRequest.
	CA            string
	ACMEDirectory string

	Mode          agentapi.Mode
	FirstPartyApp string
	// OnDemand has the engine stop when nothing needs it any more.
	OnDemand        bool
	OwnerSecretHash []byte // see localapi.ServerConfig
	DeskSecretHash  []byte // see localapi.ServerConfig
	// Keychain says that new device credentials are kept in the keychain; else
	// they are in a file only the owner can read. SetOwnerSecret changes both.
	Keychain bool
	Now      func() time.Time // see agent.Config
	Log      *slog.Logger

	// step is told how far connecting has come; for the crash tests.
	step func(string)
	// grace and first stand in for graceAfterLast and firstWithin in tests.
	grace, first time.Duration
}

// Host is the agent of a data directory, with every control plane in turn. It is made
// by New. Its methods are safe for concurrent use.
type Host struct {
	cfg      Config
	log      *slog.Logger
	kept     *connectionFile
	server   *localapi.Server
	switched chan struct{} // holds one: the agent is to be replaced
	toEnd    chan struct{} // holds one: there is a credential to end
	unlocked chan struct{} // holds one: the keychain gives the device credential too
	ready    chan struct{} // see Ready
	readied  sync.Once     // closes ready

	deciding sync.Mutex // held while connection.json changes hands

	mu         sync.Mutex      // protects what follows
	ctx        context.Context // Run's; nil before it
	current    *hostedAgent
	connecting *agentapi.Connecting
	attempt    *attempt // under way
	adopting   string   // id of the connection being taken on
	secret     bool     // there is an owner secret
	keychain   bool     // as Config.Keychain, or what SetOwnerSecret was told
}

// New opens the data directory and the listeners and makes the first agent; it
// serves nothing before Run. The errors are sentences for the owner; one of a ctx
// that ended wraps its error. Call Close when Run is not going to be called.
func New(ctx context.Context, cfg Config) (*Host, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := private.Dir(cfg.DataDir); err != nil {
		return nil, words.Errorf("cannot create the data directory %s: %w", cfg.DataDir, err)
	}
	if err := mayOpen(cfg.DataDir); err != nil {
		return nil, err
	}
	kept, err := openConnection(filepath.Join(cfg.DataDir, connectionName))
	if err != nil {
		return nil, err
	}
	if c := kept.get().Current; c != nil && cfg.ControlURL != "" && c.AuthURL != cfg.ControlURL {
		return nil, words.Errorf("this computer is connected to %s. To move it to %s, start it with --control %[1]s, type 'porchlight disconnect', and connect it anew", c.AuthURL, cfg.ControlURL)
	}
	h := &Host{
		cfg:      cfg,
		log:      cfg.Log.With("part", "host"),
		kept:     kept,
		switched: make(chan struct{}, 1),
		toEnd:    make(chan struct{}, 1),
		unlocked: make(chan struct{}, 1),
		ready:    make(chan struct{}),

		secret:   cfg.OwnerSecretHash != nil,
		keychain: cfg.Keychain,
	}
	h.server = localapi.NewServer(localapi.ServerConfig{
		DataDir:         cfg.DataDir,
		Address:         cfg.API,
		Registry:        engine.RegistryConfig{Grace: cfg.grace, FirstWithin: cfg.first, Log: cfg.Log.With("part", "engine")},
		OwnerSecretHash: cfg.OwnerSecretHash,
		DeskSecretHash:  cfg.DeskSecretHash,
		Connector:       h,
		Log:             cfg.Log.With("part", "api"),
	})
	if h.current, err = h.makeAgent(ctx); err != nil {
		return nil, errors.Join(err, h.server.Close())
	}
	return h, nil
}

// Close releases the data directory and the listeners. Run does it by itself.
func (h *Host) Close() error { return errors.Join(h.current.close(), h.server.Close()) }

// Run serves until ctx ends, or nobody needs it any more where it stops on demand;
// then it returns nil, and otherwise why it stopped. Requests under way get a moment
// to finish.
func (h *Host) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.mu.Lock()
	h.ctx = ctx
	h.mu.Unlock()
	broadcast.Raise(h.toEnd) // what an earlier run left undone
	// The server ends last: a program that connects meanwhile is told, and does not find
	// the address free while the data directory is still in use.
	answering, silence := context.WithCancel(context.WithoutCancel(ctx))
	defer silence()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.server.Run(answering) })
	g.Go(func() error {
		defer silence()
		defer h.endAttempt()
		defer cancel()
		return h.serve(ctx)
	})
	g.Go(func() error { h.endConnections(ctx); return nil })
	return g.Wait()
}

func (c *Config) complete() error {
	if c.step == nil {
		c.step = func(string) {}
	}
	if c.OnDemand {
		if c.grace == 0 {
			c.grace = graceAfterLast
		}
		if c.first == 0 {
			c.first = firstWithin
		}
	}
	if c.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.CA)) {
		return words.Errorf("the file of --ca holds no certificate in PEM form")
	}
	if c.ControlURL != "" {
		origin, err := originOf(c.ControlURL)
		if err != nil {
			return err
		}
		c.ControlURL = origin
	}
	return nil
}

// serve keeps an agent running, with the control plane of now, until ctx ends or the
// agent does.
func (h *Host) serve(ctx context.Context) error {
	for {
		again, err := h.runAgent(ctx, h.now())
		if !again || ctx.Err() != nil {
			return err
		}
		if err != nil {
			h.log.Warn("the agent did not stop cleanly", "err", err)
		}
		next, err := h.makeAgent(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		h.mu.Lock()
		h.current = next
		h.mu.Unlock()
	}
}

// runAgent runs one agent, and says whether another is to follow it.
func (h *Host) runAgent(ctx context.Context, now *hostedAgent) (again bool, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- now.run(running) }()
	go h.awaitReady(running, now)
	select {
	case err := <-ended:
		if err == nil && ctx.Err() == nil {
			err = words.Errorf("the agent stopped by itself; its log says why")
		}
		return false, err
	case <-ctx.Done():
	case <-h.server.Registry().Idle():
		h.log.Info("no app needs Porchlight any more, so it stops")
	case <-now.again:
		h.log.Info("trying the device credential again")
		again = true
	case <-h.unlocked:
		h.log.Info("the keychain is open; reading the device credential")
		again = true
	case <-h.switched:
		now.agent.EndVisits()
		again = true
	}
	stop()
	select {
	case err = <-ended:
		return again, err
	case <-time.After(drain):
		return again, words.Errorf("what was under way did not end in time")
	}
}

// awaitReady closes h.ready for the first agent that lasts so long.
func (h *Host) awaitReady(ctx context.Context, now *hostedAgent) {
	select {
	case <-now.agent.Ready():
	case <-time.After(now.readyIn):
	case <-ctx.Done():
		return
	}
	select {
	case <-h.server.Told():
	case <-ctx.Done():
		return
	}
	h.readied.Do(func() { close(h.ready) })
}

// Ready is closed once visitors can come, or that takes long, and commands find
// this Porchlight.
func (h *Host) Ready() <-chan struct{} { return h.ready }

// API is the address of the loopback API.
func (h *Host) API() string { return h.server.Addr() }

// OwnerSocket is the path of the owner tier's unix socket, the same with every
// control plane.
func (h *Host) OwnerSocket() string { return h.server.OwnerSocket() }

// Account is whose computer this is now.
func (h *Host) Account() agentapi.Account { return h.agent().Account() }

// RootCAPath is the file (PEM) with the certificate browsers have to trust, or
// empty where they trust it already.
func (h *Host) RootCAPath() string { return h.now().rootCA }

func (h *Host) agent() *agent.Agent { return h.now().agent }

func (h *Host) now() *hostedAgent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// credentials is where the device credential of a connection is kept.
func (h *Host) credentials(c connection) ownersecret.Store { return credentialsOf(h.cfg.DataDir, c) }

func credentialsOf(dataDir string, c connection) ownersecret.Store {
	if c.Store == storeKeychain {
		return ownersecret.DeviceKeychain(dataDir, c.ID)
	}
	return ownersecret.DeviceFile(dataDir, c.ID)
}

func (h *Host) storeKind() string {
	if _, keychain := h.ownerSecret(); keychain {
		return storeKeychain
	}
	return storeFile
}

// SetOwnerSecret brings an owner secret that could not be had at the start, and says
// whether secrets are kept in the keychain from now on. Nobody is disconnected for
// it; only a computer whose device credential is there too gets another agent.
func (h *Host) SetOwnerSecret(hash []byte, keychain bool) {
	h.mu.Lock()
	h.secret, h.keychain = true, keychain
	h.mu.Unlock()
	h.server.SetOwnerSecretHash(hash)
	if c := h.kept.get().Current; c != nil && c.Store == storeKeychain {
		broadcast.Raise(h.unlocked)
	}
}

// ownerSecret says whether there is one, and whether secrets go into the keychain.
func (h *Host) ownerSecret() (known, keychain bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.secret, h.keychain
}

// Connected says whether this computer is connected to a control plane, which
// need not answer.
func (h *Host) Connected() bool { return h.kept.get().Current != nil }

// ControlURL is where this computer is connected or, not being connected yet,
// belongs; empty for a computer on its own.
func (h *Host) ControlURL() string {
	if c := h.kept.get().Current; c != nil {
		return c.AuthURL
	}
	return h.cfg.ControlURL
}

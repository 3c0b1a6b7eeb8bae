// Package host runs the agent of one data directory for as long as its process
// lives, whoever this computer is meanwhile.
//
// A computer is on its own (local: control plane and relay in this process), or
// connected to a control plane elsewhere, or neither yet. Which one is in
// DATA/connection.json. Connecting and disconnecting change that file in one
// step; the agent is then stopped and another one made, while the loopback API's
// listeners stay open, so that those who call meanwhile only wait.
//
//	host.go       Start, the loop that replaces one agent by another
//	run.go        an agent as somebody: local, connected, unconnected
//	connection.go DATA/connection.json
//	connect.go    the owner connects and disconnects
//	leave.go      telling a control plane that this computer is gone
//	running.go    finding a Porchlight that runs already
package host

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/local"
	"porchlight/agent/ownersecret"
	"porchlight/internal/broadcast"
)

const (
	// graceAfterLast is how long an engine that stops on demand outlives its
	// last registrant, and firstWithin how long it waits for the first: whoever
	// started it may take a while to come up.
	graceAfterLast = 10 * time.Second
	firstWithin    = time.Minute

	// drain is how long an agent may take to finish what is under way.
	drain = 15 * time.Second
)

// Config of Start. DataDir, API and Log are required.
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
	OwnerSecretHash []byte // see agent.Config
	DeskSecretHash  []byte // see agent.Config
	// Keychain says that new device credentials are kept in the keychain; else
	// they are in a file only the owner can read. SetOwnerSecret changes both.
	Keychain bool
	Log      *slog.Logger

	// step is told how far connecting has come; for the crash tests.
	step func(string)
	// grace and first stand in for graceAfterLast and firstWithin in tests.
	grace, first time.Duration
}

// Host is an agent that serves. Its methods are safe for concurrent use.
type Host struct {
	cfg       Config
	log       *slog.Logger
	listeners *agent.Listeners
	kept      *connectionFile
	changes   broadcast.Signal
	switched  chan struct{} // holds one: the agent is to be replaced
	left      chan struct{} // holds one: there is something to take leave of
	unlocked  chan struct{} // holds one: the keychain gives the device credential too

	cancel context.CancelFunc
	ctx    context.Context // ends with the host
	done   chan struct{}
	err    error // set before done is closed

	deciding sync.Mutex // held while connection.json changes hands

	mu         sync.Mutex // protects what follows
	current    run
	connecting *agentapi.Connecting
	attempt    *attempt // under way
	adopting   string   // id of the connection being taken on
	secretHash []byte   // Config.OwnerSecretHash, or what SetOwnerSecret was told
	keychain   bool     // Config.Keychain, likewise
}

// Start opens the data directory and the listeners and begins to serve; it
// returns once the loopback API answers. The errors are sentences for the owner;
// one of a ctx that ended wraps its error. The host ends with ctx, with Close, or
// by itself when it stops on demand.
func Start(ctx context.Context, cfg Config) (*Host, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the data directory %s: %w", cfg.DataDir, err)
	}
	if err := mayOpen(cfg.DataDir); err != nil {
		return nil, err
	}
	kept, err := openConnection(filepath.Join(cfg.DataDir, connectionName))
	if err != nil {
		return nil, err
	}
	if c := kept.get().Current; c != nil && cfg.ControlURL != "" && c.AuthURL != cfg.ControlURL {
		return nil, fmt.Errorf("this computer is connected to %s. To move it to %s, start it with --control %[1]s, type 'porchlight disconnect', and connect it anew", c.AuthURL, cfg.ControlURL)
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &Host{
		cfg:       cfg,
		log:       cfg.Log.With("part", "host"),
		listeners: agent.NewListeners(cfg.DataDir, cfg.API),
		kept:      kept,
		switched:  make(chan struct{}, 1),
		left:      make(chan struct{}, 1),
		unlocked:  make(chan struct{}, 1),
		ctx:       ctx,
		cancel:    cancel,
		done:      make(chan struct{}),

		secretHash: cfg.OwnerSecretHash,
		keychain:   cfg.Keychain,
	}
	first, err := h.begin(ctx)
	if err != nil {
		cancel()
		return nil, errors.Join(err, h.listeners.Close())
	}
	raise(h.left) // what an earlier run left undone
	go func() {
		defer close(h.done)
		defer cancel()
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error {
			defer cancel()
			return h.serve(ctx, first)
		})
		g.Go(func() error { h.takeLeave(ctx); return nil })
		h.err = g.Wait()
		h.endAttempt()
		h.err = errors.Join(h.err, h.listeners.Close())
	}()
	return h, nil
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
		return errors.New("the file of --ca holds no certificate in PEM form")
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

// serve keeps an agent running, as whoever this computer is, until ctx ends or
// the agent does.
func (h *Host) serve(ctx context.Context, r run) error {
	for {
		select {
		case <-ctx.Done():
			return h.end(r)
		case <-r.Done():
			if err := r.Wait(); err != nil || ctx.Err() != nil {
				return err
			}
			return errors.New("the agent stopped by itself; its log says why")
		case <-r.Agent().Idle():
			h.log.Info("no app needs Porchlight any more, so it stops")
			return h.end(r)
		case <-r.again():
			h.log.Info("trying the device credential again")
		case <-h.unlocked:
			h.log.Info("the keychain is open; reading the device credential")
		case <-h.switched:
			r.Agent().EndVisits()
		}
		if err := h.end(r); err != nil {
			h.log.Warn("the agent did not stop cleanly", "err", err)
		}
		next, err := h.begin(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		r = next
	}
}

// begin makes an agent as whoever this computer is now.
func (h *Host) begin(ctx context.Context) (run, error) {
	r, err := h.startRun(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.current = r
	r.Agent().SetOwnerSecretHash(h.secretHash) // it may have come meanwhile
	h.mu.Unlock()
	h.changes.Raise()
	return r, nil
}

func (h *Host) end(r run) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	return r.Close(ctx)
}

// API is the address of the loopback API.
func (h *Host) API() string { return h.listeners.API() }

// OwnerSocket is the path of the owner tier's unix socket, the same whoever this
// computer becomes.
func (h *Host) OwnerSocket() string { return h.listeners.OwnerSocket() }

// Account is whose computer this is now.
func (h *Host) Account() agentapi.Account { return h.agent().Account() }

// RootCAPath is the file (PEM) with the certificate browsers have to trust, or
// empty where they trust it already.
func (h *Host) RootCAPath() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.RootCAPath()
}

func (h *Host) agent() *agent.Agent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.Agent()
}

// Done is closed when nothing serves any more.
func (h *Host) Done() <-chan struct{} { return h.done }

// Wait returns when nothing serves any more: nil after Close, the end of Start's
// context or of everybody who needed it, otherwise why it stopped.
func (h *Host) Wait() error {
	<-h.done
	return h.err
}

// Close stops serving: requests under way get a moment to finish. It returns
// Wait's error, or ctx's when that ends first.
func (h *Host) Close(ctx context.Context) error {
	h.cancel()
	select {
	case <-h.done:
		return h.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// credentials is where the device credential of a connection is kept.
func (h *Host) credentials(c connection) ownersecret.Store {
	if c.Store == storeKeychain {
		return ownersecret.DeviceKeychain(h.cfg.DataDir, c.ID)
	}
	return ownersecret.DeviceFile(h.cfg.DataDir, c.ID)
}

func (h *Host) storeKind() string {
	if _, keychain := h.ownerSecret(); keychain {
		return storeKeychain
	}
	return storeFile
}

func raise(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// SetOwnerSecret tells of an owner secret that could not be had at the start, and
// whether secrets are kept in the keychain from now on. Nothing stops for it; only
// a computer whose device credential is there too is made anew.
func (h *Host) SetOwnerSecret(hash []byte, keychain bool) {
	h.mu.Lock()
	h.secretHash, h.keychain = hash, keychain
	if h.current != nil {
		h.current.Agent().SetOwnerSecretHash(hash)
	}
	h.mu.Unlock()
	if c := h.kept.get().Current; c != nil && c.Store == storeKeychain {
		raise(h.unlocked)
	}
}

func (h *Host) ownerSecret() (hash []byte, keychain bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.secretHash, h.keychain
}

// localConfig is for this computer on its own.
func (h *Host) localConfig(forget bool) local.Config {
	hash, _ := h.ownerSecret()
	return local.Config{
		DataDir:         h.cfg.DataDir,
		HTTPS:           h.cfg.HTTPS,
		Mode:            h.cfg.Mode,
		FirstPartyApp:   h.cfg.FirstPartyApp,
		Grace:           h.cfg.grace,
		FirstWithin:     h.cfg.first,
		OwnerSecretHash: hash,
		DeskSecretHash:  h.cfg.DeskSecretHash,
		Listeners:       h.listeners,
		Connector:       h,
		ForgetPeople:    forget,
		Log:             h.cfg.Log,
	}
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

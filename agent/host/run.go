package host

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"porchlight/agent"
	"porchlight/agent/certs"
	"porchlight/agent/local"
	"porchlight/agent/ownersecret"
	"porchlight/control/controlapi"
	"porchlight/internal/localca"
)

const (
	// againAfter is how long a keychain that did not give the device credential
	// is left alone: asking may put a question on the screen.
	againAfter = 2 * time.Minute

	// readyWait bounds how long Start waits for the first visitor of a connected
	// computer to be possible; it serves meanwhile.
	readyWait = 3 * time.Second

	// acmeDir and ownCADir, inside the data directory, hold certificates of a
	// connected computer.
	acmeDir  = "acme"
	ownCADir = "connected-ca"
)

// run is an agent that serves, as somebody.
type run interface {
	Agent() *agent.Agent
	RootCAPath() string
	Done() <-chan struct{}
	Wait() error
	Close(ctx context.Context) error
	// again is readable when the agent should be made anew, because something it
	// lacked may be there; nil for never.
	again() <-chan time.Time
}

// startRun makes the agent that connection.json asks for.
func (h *Host) startRun(ctx context.Context) (run, error) {
	kept := h.kept.get()
	switch {
	case kept.Current != nil:
		return h.startConnected(ctx, *kept.Current)
	case !h.cfg.Local:
		cfg := h.agentConfig()
		cfg.Unlinked = unconnected(h.cfg.ControlURL)
		return h.startAgent(ctx, cfg, "", nil)
	}
	r, err := local.Start(ctx, h.localConfig(kept.ForgetLocal))
	if err != nil {
		return nil, err
	}
	if kept.ForgetLocal {
		if err := h.kept.update(func(k *connections) { k.ForgetLocal = false }); err != nil {
			h.log.Warn("the people of an earlier time are forgotten again at the next start", "err", err)
		}
	}
	return localRun{r}, nil
}

// unconnected is what the owner reads of a computer that is nobody: how to
// connect it and, unless it belongs to one control plane, how to do without.
func unconnected(controlURL string) string {
	if controlURL != "" {
		return "This computer is not connected. Type: porchlight connect " + controlURL
	}
	return "This computer is not connected. Type 'porchlight connect URL' to connect it to a control plane, or start it with 'porchlight agent --local' to use it on its own."
}

// localRun is this computer on its own.
type localRun struct{ *local.Running }

func (localRun) again() <-chan time.Time { return nil }

// startConnected makes the agent of a connected computer. Without its credential
// it runs all the same: apps may publish, the owner is told, approvals stay.
func (h *Host) startConnected(ctx context.Context, c connection) (run, error) {
	cfg := h.agentConfig()
	cfg.ComputerID = c.ComputerID
	credential, err := h.credential(ctx, c)
	var again <-chan time.Time
	switch {
	case err == nil:
		roots, err := rootsOf(c.CA)
		if err != nil {
			return nil, err
		}
		cfg.Link = &agent.Link{AuthURL: c.AuthURL, Credential: credential, RootCAs: roots}
	case ctx.Err() != nil:
		return nil, fmt.Errorf("Porchlight was stopped while it started: %w", ctx.Err())
	case errors.Is(err, ownersecret.ErrNotFound):
		cfg.Unlinked = fmt.Sprintf("The device credential of this computer is gone from the %s. Type 'porchlight connect %s' to connect it again.", c.Store, c.AuthURL)
	case errors.Is(err, ownersecret.ErrLocked), errors.Is(err, ownersecret.ErrUnavailable):
		cfg.Unlinked = "The keychain is locked, and this computer's device credential is in it. Unlock it; Porchlight notices by itself."
		if hash, _ := h.ownerSecret(); hash != nil {
			again = time.After(againAfter)
		}
	default:
		return nil, err
	}
	if cfg.Unlinked != "" {
		h.log.Warn("this computer cannot speak to its control plane", "err", err)
	}
	rootCA, err := h.certificates(&cfg, c)
	if err != nil {
		return nil, err
	}
	return h.startAgent(ctx, cfg, rootCA, again)
}

// credential is this computer's at the control plane of c. A keychain that did
// not even give the owner secret is not asked again: whoever waits for that one
// tells once it is unlocked: SetOwnerSecret.
func (h *Host) credential(ctx context.Context, c connection) (string, error) {
	if hash, keychain := h.ownerSecret(); c.Store == storeKeychain && keychain && hash == nil {
		return "", ownersecret.ErrLocked
	}
	return h.credentials(c).Get(ctx)
}

// certificates chooses where a connected computer has its certificates from, and
// returns the root browsers have to trust first, if any. Ordered ones need an
// authority that can reach the relay: on a private network, whose control plane
// has a certificate of its own making, this computer makes its own as well.
func (h *Host) certificates(cfg *agent.Config, c connection) (rootCA string, err error) {
	if !ownCertificates(c.CA, c.ACMEDirectory) {
		roots, err := rootsOf(c.CA)
		if err != nil {
			return "", err
		}
		cfg.ACME = &certs.ACMEConfig{
			Dir:       filepath.Join(h.cfg.DataDir, acmeDir),
			Directory: c.ACMEDirectory,
			RootCAs:   roots,
		}
		return "", nil
	}
	ca, err := localca.Open(filepath.Dir(h.ownRoot()), localca.Options{
		Names:        []string{controlapi.HostName(c.Host)},
		Organisation: "Porchlight on the computer " + c.Name,
		Log:          h.cfg.Log.With("part", "certs"),
	})
	if err != nil {
		return "", err
	}
	cfg.IssueCertificate = ca.Issue
	return h.ownRoot(), nil
}

// ownCertificates says whether a computer connected in this way makes its
// certificates itself.
func ownCertificates(ca, acmeDirectory string) bool { return ca != "" && acmeDirectory == "" }

// ownRoot is the file with the root that browsers then have to trust.
func (h *Host) ownRoot() string {
	return filepath.Join(h.cfg.DataDir, ownCADir, localca.RootFile)
}

func (h *Host) agentConfig() agent.Config {
	hash, _ := h.ownerSecret()
	return agent.Config{
		DataDir:         h.cfg.DataDir,
		Mode:            h.cfg.Mode,
		FirstPartyApp:   h.cfg.FirstPartyApp,
		Grace:           h.cfg.grace,
		FirstWithin:     h.cfg.first,
		OwnerSecretHash: hash,
		DeskSecretHash:  h.cfg.DeskSecretHash,
		Listeners:       h.listeners,
		Connector:       h,
		Log:             h.cfg.Log,
		IssueCertificate: func(name string) (*tls.Certificate, error) {
			return nil, fmt.Errorf("%s is not a name of this computer", name)
		},
	}
}

// agentRun is an agent alone, without a control plane of ours.
type agentRun struct {
	agent  *agent.Agent
	rootCA string
	later  <-chan time.Time
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

func (h *Host) startAgent(ctx context.Context, cfg agent.Config, rootCA string, again <-chan time.Time) (run, error) {
	a, err := agent.New(cfg)
	if err != nil {
		return nil, err
	}
	// Not ended by ctx but by Close, which lets it drain.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &agentRun{agent: a, rootCA: rootCA, later: again, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		defer cancel()
		r.err = a.Run(running)
	}()
	h.mu.Lock()
	first := h.current == nil
	h.mu.Unlock()
	if !first {
		return r, nil // who waits for it follows the owner's state
	}
	timer := time.NewTimer(readyWait)
	defer timer.Stop()
	select {
	case <-a.Ready():
	case <-r.done:
		if r.err != nil {
			return nil, r.err
		}
	case <-ctx.Done():
	case <-timer.C:
		// It serves; what is late says so in the owner's state.
	}
	return r, nil
}

func (r *agentRun) Agent() *agent.Agent     { return r.agent }
func (r *agentRun) RootCAPath() string      { return r.rootCA }
func (r *agentRun) Done() <-chan struct{}   { return r.done }
func (r *agentRun) Wait() error             { <-r.done; return r.err }
func (r *agentRun) again() <-chan time.Time { return r.later }

func (r *agentRun) Close(ctx context.Context) error {
	r.cancel()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rootsOf adds certificates (PEM) to those of the system; nil for none to add.
func rootsOf(ca string) (*x509.CertPool, error) {
	if ca == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return nil, errors.New("the certificate authority kept for this computer's connection cannot be read; disconnect it and connect it again")
	}
	return pool, nil
}

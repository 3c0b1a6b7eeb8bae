package host

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"path/filepath"
	"time"

	"porchlight/agent"
	"porchlight/agent/certs"
	"porchlight/agent/doctor"
	"porchlight/agent/local"
	"porchlight/agent/ownersecret"
	"porchlight/agent/trust"
	"porchlight/control/controlapi"
	"porchlight/internal/localca"
	"porchlight/internal/words"
)

const (
	// againAfter is how long a keychain that did not give the device credential
	// is left alone: asking may put a question on the screen.
	againAfter = 2 * time.Minute

	// readyIn is that of a computer that a control plane elsewhere may be out
	// of reach of; what localReadyIn waits for is in this process.
	readyIn      = 3 * time.Second
	localReadyIn = 10 * time.Second

	// acmeDir and ownCADir, inside the data directory, hold certificates of a
	// connected computer.
	acmeDir  = "acme"
	ownCADir = "connected-ca"
)

// hostedAgent is an agent as who this computer is now, made and not yet running.
type hostedAgent struct {
	agent *agent.Agent
	// run serves until its context ends, and lets requests under way finish; close
	// is for one that is not to run.
	run   func(context.Context) error
	close func() error
	// rootCA is the file with the root certificate browsers have to trust; empty for
	// none.
	rootCA string
	// readyIn bounds how long the first visitor may take to be possible before the
	// start counts as done; what is late says so in the owner's state.
	readyIn time.Duration
	// again is readable when the agent should be made anew, because something it
	// lacked may be there; nil for never.
	again <-chan time.Time
}

// makeAgent makes the agent that connection.json asks for.
func (h *Host) makeAgent(ctx context.Context) (*hostedAgent, error) {
	kept := h.kept.get()
	switch {
	case kept.Current != nil:
		return h.makeConnected(ctx, *kept.Current)
	case !h.cfg.Local:
		cfg := h.agentConfig()
		cfg.NoControlPlane = unconnected(h.cfg.ControlURL)
		return alone(cfg)
	}
	l, err := local.New(ctx, local.Config{Agent: h.agentConfig(), HTTPS: h.cfg.HTTPS, ForgetPeople: kept.ForgetLocal})
	if err != nil {
		return nil, err
	}
	if kept.ForgetLocal {
		if err := h.kept.update(func(k *connections) { k.ForgetLocal = false }); err != nil {
			h.log.Warn("the people of an earlier time are forgotten again at the next start", "err", err)
		}
	}
	return &hostedAgent{agent: l.Agent(), run: l.Run, close: l.Close, rootCA: local.RootCAPath(h.cfg.DataDir), readyIn: localReadyIn}, nil
}

// alone is an agent without a control plane in this process.
func alone(cfg agent.Config) (*hostedAgent, error) {
	a, err := agent.New(cfg)
	if err != nil {
		return nil, err
	}
	return &hostedAgent{agent: a, run: a.Run, close: a.Close, readyIn: readyIn}, nil
}

// unconnected is what the owner reads of a computer that is nobody: how to
// connect it and, unless it belongs to one control plane, how to do without.
func unconnected(controlURL string) words.Sentence {
	if controlURL != "" {
		return words.Of("This computer is not connected. Type: porchlight connect %s", controlURL)
	}
	return words.Of("This computer is not connected. Type 'porchlight connect URL' to connect it to a control plane, or start it with 'porchlight agent --local' to use it on its own.")
}

// credentialGone is why a connected computer has no control plane, where its keychain or
// its file answers that the device credential is not there.
func credentialGone(c connection) words.Sentence {
	if c.Store == storeFile {
		return words.Of("The file with this computer's device credential is gone. Type 'porchlight connect %s' to connect it again.", c.AuthURL)
	}
	return words.Of("This computer's device credential is gone from the keychain. Type 'porchlight connect %s' to connect it again.", c.AuthURL)
}

// makeConnected makes the agent of a connected computer. Without its credential
// it runs all the same: apps may publish, the owner is told, approvals stay.
func (h *Host) makeConnected(ctx context.Context, c connection) (*hostedAgent, error) {
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
		cfg.ControlPlane = &agent.ControlPlane{AuthURL: c.AuthURL, Credential: credential, RootCAs: roots}
	case ctx.Err() != nil:
		return nil, words.Errorf("Porchlight was stopped while it started: %w", ctx.Err())
	case errors.Is(err, ownersecret.ErrNotFound):
		cfg.NoControlPlane = credentialGone(c)
	case errors.Is(err, ownersecret.ErrLocked), errors.Is(err, ownersecret.ErrUnavailable):
		cfg.NoControlPlane = words.Of("The keychain is locked, and this computer's device credential is in it. Unlock it; Porchlight notices by itself.")
		if known, _ := h.ownerSecret(); known {
			again = time.After(againAfter)
		}
	default:
		return nil, err
	}
	if !cfg.NoControlPlane.IsZero() {
		h.log.Warn("this computer cannot speak to its control plane", "err", err)
	}
	rootCA, err := h.certificates(&cfg, c)
	if err != nil {
		return nil, err
	}
	as, err := alone(cfg)
	if err != nil {
		return nil, err
	}
	as.rootCA, as.again = rootCA, again
	return as, nil
}

// credential is this computer's at the control plane of c. A keychain that did
// not even give the owner secret is not asked again: SetOwnerSecret is called once it
// is unlocked.
func (h *Host) credential(ctx context.Context, c connection) (string, error) {
	if known, keychain := h.ownerSecret(); c.Store == storeKeychain && keychain && !known {
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

// agentConfig is what every agent is given, whatever the control plane.
func (h *Host) agentConfig() agent.Config {
	return agent.Config{
		DataDir:       h.cfg.DataDir,
		Server:        h.server,
		Mode:          h.cfg.Mode,
		FirstPartyApp: h.cfg.FirstPartyApp,
		Now:           h.cfg.Now,
		Log:           h.cfg.Log,
		Authorities:   func() (doctor.Authorities, error) { return AuthoritiesOf(h.cfg.DataDir) },
		OwnAuthority:  func() (*trust.Authority, error) { return OwnAuthority(h.cfg.DataDir) },
		IssueCertificate: func(name string) (*tls.Certificate, error) {
			return nil, words.Errorf("%s is not a name of this computer", name)
		},
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
		return nil, words.Errorf("the certificate authority kept for this computer's connection cannot be read; disconnect it and connect it again")
	}
	return pool, nil
}

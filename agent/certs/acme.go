package certs

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"
	"golang.org/x/sync/singleflight"

	"porchlight/internal/acmeorder"
)

const (
	// obtainIn bounds one try to have a certificate issued.
	obtainIn = 2 * time.Minute
	// A name whose certificate was refused is tried again after firstRest, and
	// after twice as long with every further refusal, up to lastRest: public
	// authorities allow few failures an hour.
	firstRest = time.Minute
	lastRest  = time.Hour
)

// ACMEConfig of an ACME. Dir and Allowed are required.
type ACMEConfig struct {
	// Dir keeps account, certificates and keys (0700). The keys never leave it.
	Dir string
	// Directory is the URL of the authority's ACME directory; empty means Let's
	// Encrypt.
	Directory string
	// RootCAs the directory's own certificate must lead to; nil: the system's.
	RootCAs *x509.CertPool
	// Allowed says which names may have a certificate now. It must be narrow:
	// a connection under a name it allows has one ordered.
	Allowed func(name string) bool
	// Before is asked before each order, a renewal's too, and refuses with its error; nil
	// for nothing to ask.
	Before func(ctx context.Context, name string) error
	// Own says whether a name is in a DNS that the owner keeps, for what helps; nil where none is.
	Own func(name string) bool
	// ByDNS has one certificate for all names of the computer, where that is offered; nil for
	// one for each name.
	ByDNS *PublishConfig
	// OnTrouble is called when Trouble may answer something else; nil for not.
	OnTrouble func()
	// OnMade is called when a new certificate is there, and State describes it; nil
	// for not.
	OnMade func()
	// Now tells the time; nil means time.Now.
	Now func() time.Time
	Log *slog.Logger // nil means nowhere
}

// ACME is a Source whose certificates an authority issues over ACME (RFC 8555): one
// for all names of the computer where that is offered (wildcard.go), or else
// one for each name, made when the name is first wanted and renewed while it
// is. The authority makes sure of a name by connecting to it (TLS-ALPN-01, RFC
// 8737): through relay and tunnel to this Source, because no other port of
// this computer can be reached. It is safe for concurrent use.
type ACME struct {
	cfg    ACMEConfig
	ready  chan struct{}   // closed once what follows is there, which Run sets
	life   context.Context // of Run: no order outlives it
	magic  *certmagic.Config
	cache  *certmagic.Cache
	flight singleflight.Group // by name
	sooner chan struct{}      // has one when a name may be tried sooner, see Again

	byDNS certmagic.Issuer         // of the certificate of all names; Run sets it
	wild  atomic.Pointer[wildcard] // the same; nil while there is none

	// issuer stands in for the authority in the tests; nil outside them.
	issuer certmagic.Issuer

	mu        sync.Mutex // protects what follows
	refused   map[string]refusal
	unrenewed map[string]renewal   // whose renewal fails, by name
	managed   map[string]struct{}  // names the library renews
	since     map[string]time.Time // when each that has a public certificate first had one
}

var _ Reporter = (*ACME)(nil)

// NewACME starts nothing; handshakes wait until Run runs.
func NewACME(cfg ACMEConfig) *ACME {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.OnTrouble == nil {
		cfg.OnTrouble = func() {}
	}
	if cfg.OnMade == nil {
		cfg.OnMade = func() {}
	}
	return &ACME{
		cfg: cfg, ready: make(chan struct{}), sooner: make(chan struct{}, 1),
		refused: make(map[string]refusal), unrenewed: make(map[string]renewal), managed: make(map[string]struct{}),
		since: make(map[string]time.Time),
	}
}

// Run keeps the certificates of names, and of whatever else visitors ask for,
// renewed until ctx ends. Names lists those that should have a certificate before
// the first visitor comes; changed is readable when it may answer others. Run
// may be called once.
func (a *ACME) Run(ctx context.Context, names func() []string, changed <-chan struct{}) error {
	var err error
	order := acmeorder.Config{
		Storage: newStorage(a.cfg.Dir), Directory: a.cfg.Directory, RootCAs: a.cfg.RootCAs,
		Capacity: maxNames, OnEvent: a.noteEvent,
	}
	a.magic, a.cache, err = acmeorder.New(order)
	if err != nil {
		return err
	}
	defer a.cache.Stop()
	a.byDNS = acmeorder.ByDNS(a.magic, order, &published{ACME: a})
	if a.issuer != nil {
		a.magic.Issuers, a.byDNS = []certmagic.Issuer{a.issuer}, a.issuer
	}
	a.life = ctx
	if a.cfg.ByDNS != nil {
		a.load(normal(a.cfg.ByDNS.Root()))
	}
	close(a.ready)
	for {
		var again <-chan time.Time
		if wait, any := a.obtainAll(ctx, names()); any {
			again = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-a.sooner:
		case <-again:
		}
	}
}

// obtainAll sees to it that every name has a certificate, and returns how long
// it is until one has to be looked at: the first of those that were refused, mostly.
func (a *ACME) obtainAll(ctx context.Context, names []string) (wait time.Duration, any bool) {
	if len(names) > 0 {
		wait, any = a.obtainCommon(ctx)
	}
	for _, name := range names {
		name = normal(name)
		if ctx.Err() != nil || !a.Serves(name) || a.spared(name) {
			continue
		}
		if _, awaits := a.awaits(name); awaits {
			continue
		}
		if err := a.obtain(ctx, name); err != nil {
			left := a.restOf(name)
			if !any || left < wait {
				wait, any = left, true
			}
		}
	}
	a.forget(names)
	return wait, any
}

// GetCertificate is for tls.Config; see Source. The first visitor of a name waits
// for its certificate.
func (a *ACME) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := normal(hello.ServerName)
	if !a.Serves(name) {
		return nil, nil
	}
	select {
	case <-a.ready:
	case <-hello.Context().Done():
		return nil, hello.Context().Err()
	}
	if acmeorder.IsChallenge(hello) {
		return a.magic.GetCertificate(hello)
	}
	if w := a.serving(name); w != nil {
		return w.cert, nil
	}
	if a.holds(name) {
		return a.magic.GetCertificate(hello)
	}
	if root, awaits := a.awaits(name); awaits {
		if err := a.obtainAllNames(hello.Context(), root); err != nil {
			return nil, err
		}
		if w := a.common(name); w != nil {
			return w.cert, nil
		}
		return nil, fmt.Errorf("no certificate of %s could be had", wildcardName(root))
	}
	if err := a.obtain(hello.Context(), name); err != nil {
		return nil, err
	}
	return a.magic.GetCertificate(hello)
}

// Serves implements Source.
func (a *ACME) Serves(name string) bool { return name != "" && a.cfg.Allowed(name) }

// holds says whether a certificate of name alone is at hand.
func (a *ACME) holds(name string) bool {
	return len(a.cache.AllMatchingCertificates(name)) > 0
}

// obtain waits until there is a certificate of name, from the directory or from
// the authority, or ctx ends. Run has set what it needs.
func (a *ACME) obtain(ctx context.Context, name string) error {
	if a.holds(name) {
		return nil
	}
	return a.ordered(ctx, name, func(ctx context.Context) error { return a.magic.ManageSync(ctx, []string{name}) },
		func(err error) { a.note(name, err) })
}

// ordered waits until a certificate that is called name was ordered, or ctx ends. However many
// want one, it is ordered once, and goes on when they leave, until Run ends. note is told how
// it ended.
func (a *ACME) ordered(ctx context.Context, name string, order func(context.Context) error, note func(error)) error {
	if err := a.resting(name); err != nil {
		return err
	}
	done := a.flight.DoChan(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(a.life, obtainIn)
		defer cancel()
		err := order(ctx)
		if a.life.Err() == nil {
			note(err)
		}
		return nil, err
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

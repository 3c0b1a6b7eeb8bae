// Package certs gives the agent's TLS server its certificates: one for each
// name, made when a visitor first asks for the name, kept in memory and made
// anew when two thirds of its life are over.
//
// A visitor's server name comes in; the certificate of exactly that name goes
// out, or the handshake ends with unrecognized_name. Where certificates come
// from is Config.Issue (the local certificate authority); a source that does
// its own keeping, as an ACME client does, stands beside Keeper behind Source.
// Nothing here writes to disk.
package certs

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// maxNames bounds the certificates kept. One app is one name, so a computer is
// far below; past it the one unused for longest goes.
const maxNames = 512

// retryAfter is how long a failed renewal rests while the certificate at hand
// is still good.
const retryAfter = time.Minute

// errNotAllowed is returned for a name that is not ours to answer for.
var errNotAllowed = errors.New("no certificate is kept for this name")

// Source gives the certificate of a handshake. For a name it does not serve it
// returns nil and no error, which crypto/tls answers with unrecognized_name.
type Source interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Serves says whether name may be answered for now; it is asked for every
	// handshake, resumed ones included. The name is normal (see normal).
	Serves(name string) bool
}

// Config of a Keeper.
type Config struct {
	// Issue makes a certificate for one name; Leaf must be set. Required.
	Issue func(name string) (*tls.Certificate, error)
	// Allowed says which names are served at this moment; it is asked at every
	// handshake and must be quick. Required.
	Allowed func(name string) bool
	// OnMade is called when State may answer something else; nil for not.
	OnMade func()
	// Now tells the time; nil means time.Now.
	Now func() time.Time
	// Log is told of failures; nil means nowhere.
	Log *slog.Logger
}

// Keeper is a Source that keeps what Config.Issue makes. It is safe for
// concurrent use and starts no goroutine.
type Keeper struct {
	cfg    Config
	flight singleflight.Group // by name

	mu   sync.Mutex
	kept map[string]*entry
}

// entry is a certificate and when to look for its successor. Guarded by mu; the
// certificate itself is never changed.
type entry struct {
	cert    *tls.Certificate
	renewAt time.Time
	used    time.Time
}

var _ Reporter = (*Keeper)(nil)

// New makes a Keeper.
func New(cfg Config) *Keeper {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.OnMade == nil {
		cfg.OnMade = func() {}
	}
	return &Keeper{cfg: cfg, kept: make(map[string]*entry)}
}

// GetCertificate is for tls.Config. See Source.
func (k *Keeper) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, err := k.Certificate(hello.ServerName)
	if errors.Is(err, errNotAllowed) {
		// An error here would become internal_error; nothing at all becomes
		// unrecognized_name, which is what it is.
		return nil, nil
	}
	return cert, err
}

// Serves implements Source.
func (k *Keeper) Serves(name string) bool { return name != "" && k.cfg.Allowed(name) }

// Certificate returns the certificate of name, making it when needed, or
// errNotAllowed.
func (k *Keeper) Certificate(name string) (*tls.Certificate, error) {
	name = normal(name)
	if !k.Serves(name) {
		return nil, errNotAllowed
	}
	if cert, good := k.find(name); good {
		return cert, nil
	}
	// However many visitors arrive at once, one makes the certificate.
	v, err, _ := k.flight.Do(name, func() (any, error) {
		kept, good := k.find(name)
		if good { // made between our look and our turn
			return kept, nil
		}
		cert, err := k.make(name)
		if err == nil {
			k.cfg.OnMade()
			return cert, nil
		}
		if kept == nil {
			k.cfg.Log.Error("a certificate could not be made; visitors of this name are turned away", "name", name, "err", err)
			return nil, err
		}
		k.cfg.Log.Warn("a certificate could not be renewed; the old one still serves", "name", name, "until", kept.Leaf.NotAfter, "err", err)
		k.postpone(name)
		return kept, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*tls.Certificate), nil
}

// find returns the certificate kept for name, nil when there is none that is
// valid now, and whether it may be used without trying to renew it.
func (k *Keeper) find(name string) (cert *tls.Certificate, good bool) {
	now := k.cfg.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.kept[name]
	if e == nil {
		return nil, false
	}
	if !now.Before(e.cert.Leaf.NotAfter) {
		delete(k.kept, name)
		return nil, false
	}
	e.used = now
	return e.cert, now.Before(e.renewAt)
}

// make issues and keeps a certificate.
func (k *Keeper) make(name string) (*tls.Certificate, error) {
	cert, err := k.cfg.Issue(name)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", name, err)
	}
	if cert == nil || cert.Leaf == nil {
		return nil, fmt.Errorf("make a certificate for %s: it came without its leaf", name)
	}
	leaf := cert.Leaf
	if err := leaf.VerifyHostname(name); err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", name, err)
	}
	now := k.cfg.Now()
	if !now.Before(leaf.NotAfter) {
		return nil, fmt.Errorf("make a certificate for %s: it expired on %s", name, leaf.NotAfter.Format(time.DateOnly))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, there := k.kept[name]; !there && len(k.kept) >= maxNames {
		k.evict()
	}
	k.kept[name] = &entry{
		cert:    cert,
		renewAt: renewAt(leaf),
		used:    now,
	}
	return cert, nil
}

// evict drops the entry unused for longest. It is called with mu held, and so
// seldom that looking at every entry costs less than keeping them in order.
func (k *Keeper) evict() {
	byUse := func(a, b string) int { return k.kept[a].used.Compare(k.kept[b].used) }
	delete(k.kept, slices.MinFunc(slices.Collect(maps.Keys(k.kept)), byUse))
}

// postpone rests renewal of name for retryAfter.
func (k *Keeper) postpone(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.kept[name]; e != nil {
		e.renewAt = k.cfg.Now().Add(retryAfter)
	}
}

// normal is the form in which server names are compared: lower case, without a
// trailing dot.
func normal(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

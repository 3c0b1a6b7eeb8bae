// Package proxy carries visitors' requests to published apps.
//
// In comes a raw connection from the tunnel; TLS ends here. A request goes one
// way: host → app → our own paths → who is it (cookie, token, password, certificate or
// signature) → may they
// (access) → headers stripped, five set → the app. Out comes the app's
// answer, streamed, or a page of ours that says in a sentence what is wrong.
//
// Nothing is ever proxied without an identity, no path is exempt, the target is
// always on this computer, and no request waits for the control plane: it is
// asked once, when a visitor comes back from signing in.
package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync/atomic"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/identity"
	"porchlight/agent/proxy/gate"
	"porchlight/agent/requests"
	"porchlight/agent/senders"
	"porchlight/agent/upstream"
	"porchlight/control/controlapi"
	"porchlight/internal/bounds"
	"porchlight/internal/filelimit"
)

// Apps finds published apps; *engine.Apps is one. Lookup is called several times a
// request, from any goroutine.
type Apps interface {
	Lookup(name string) (engine.App, bool)
}

// Authenticator is tried before the session cookie. present is false when the
// request carries nothing of its kind; with present true and an error the
// request is refused without a look at cookies.
type Authenticator interface {
	Authenticate(r *http.Request) (id access.Identity, present bool, err error)
}

// Config of New. Fields without a remark are required.
type Config struct {
	Apps     Apps
	Access   *access.Access
	Activity *activity.Log
	Root     func() engine.Root
	// AuthURL of the control plane, https://host[:port] without a path; empty
	// while this computer is not connected.
	AuthURL func() string
	// Redeem exchanges a visitor's code at the control plane.
	Redeem func(context.Context, controlapi.Redeem) (controlapi.Visitor, error)
	// TLS gives the certificate of each host name (certs.TLSConfig).
	TLS      *tls.Config
	Instance string // 8 hexadecimal digits, part of cookie names
	Key      []byte // 32 random bytes, from which PKCE verifiers are made
	// Local is true under the local certificate authority.
	Local bool
	// Public says whether browsers everywhere trust the certificate of a host, and since
	// when it has had such a one; nil: no host has.
	Public func(host string) (since time.Time, is bool)
	// DisplayName is what the owner calls themselves, or empty; nil for nothing.
	DisplayName func() string
	// TellOff says whether browsers are to keep a page for when this computer is off; nil:
	// they are not.
	TellOff func() bool
	// List returns all apps, for the launcher; nil: the launcher lists none.
	List func() []engine.App
	// ByID finds an app that an own domain leads to; nil: none leads anywhere.
	ByID func(id string) (engine.App, bool)
	// Bearer authenticates by access token; nil: only cookies do.
	Bearer Authenticator
	// Senders find out what named senders signed; nil: there are none.
	Senders *senders.Senders
	// DeviceAuthority is who signed the certificates of devices for an app; nil for none.
	DeviceAuthority func(appID string) *x509.CertPool
	Devices         Devices // for visitors to make their own; nil: they cannot
	// Identity signs who a visitor is, for apps with the option; nil: no app is told so.
	Identity *identity.Signer
	// Welcomes says whether whoever listens on an app's port now may be sent what
	// visitors send. It is asked once a new connection to it stands and before a
	// byte goes out; nil: anybody may.
	Welcomes func(name string, target upstream.Target, peer agentapi.Listener) bool
	// ShowedKey says whether an app whose key is pinned may show this one, which is not
	// App.Key; nil: it may not.
	ShowedKey func(ctx context.Context, name, key string) bool
	// Elsewhere is asked when nobody takes a connection where an app was, and says
	// whether looking it up again shows another place; nil: it never does.
	Elsewhere func(ctx context.Context, name string, dead upstream.Target) bool
	// OnFailed is called for each request that an app did not answer, or not to its end;
	// down is true where nobody took the connection. OnAnswered is called for each that it
	// answered. nil for not.
	OnFailed   func(appID string, why upstream.Failure, down bool)
	OnAnswered func(appID string)
	// OnHint is called for each answer that shows that the app does not know its public
	// address, told it or not. nil for not.
	OnHint func(appID string)
	// OnCompared is called for each answer to a request that had the app's own address in
	// its Origin, or asked for a WebSocket: an app may compare that with what it is called.
	// nil for not.
	OnCompared func(appID string, kind agentapi.Compared, status int)
	// Requests keeps what visitors asked, for the owner.
	Requests *requests.Log
	// Patience is how long a page that a visitor loads waits for the first word of an
	// app whose options say nothing of it; 60 s when zero. Nothing else is limited: an
	// event stream or a long poll may be silent for as long as it likes.
	Patience time.Duration
	// DecideWithin is how long a connection has for a first request that is let
	// through; 10 s when zero.
	DecideWithin time.Duration
	// Files is how many files this process may have open, of which visitors get
	// their shares; what the system says when zero.
	Files int
	Now   func() time.Time // time.Now when nil
	Log   *slog.Logger     // discarded when nil
}

// patience is Config.Patience unless that is set.
const patience = time.Minute

// Proxy serves visitors; see Serve.
type Proxy struct {
	config   Config
	cookies  cookieNames
	now      func() time.Time
	log      *slog.Logger
	reverse  *httputil.ReverseProxy
	apps     transports                    // connections of reverse to apps
	direct   *appConns                     // connections of forwardDirect to apps
	wrong    *bounds.Buckets[netip.Prefix] // codes that were none, by network
	guesses  *bounds.Buckets[netip.Prefix] // app passwords that were none, by network
	making   *bounds.Buckets[string]       // certificates that are made, by account
	rooms    *rooms
	waits    waits                 // visits that have not lasted
	own      ownVisits             // of this computer to itself
	checking atomic.Pointer[check] // the newest look at a browser's trust; nil for none

	noKey   atomic.Bool  // see keyless
	broken  atomic.Int64 // see HTTP
	crowded atomic.Int64 // see Crowded; Unix seconds
}

// New checks the configuration and starts nothing.
func New(c Config) (*Proxy, error) {
	if c.Apps == nil || c.Access == nil || c.Activity == nil || c.Root == nil || c.AuthURL == nil || c.Redeem == nil || c.TLS == nil {
		return nil, errors.New("proxy: Apps, Access, Root, AuthURL, Redeem and TLS are required")
	}
	if len(c.Instance) != 8 || len(c.Key) < 32 {
		return nil, errors.New("proxy: Instance must be 8 digits and Key at least 32 bytes")
	}
	p := &Proxy{config: c, cookies: namesFor(c.Instance), now: c.Now, log: c.Log}
	if p.now == nil {
		p.now = time.Now
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.config.Patience <= 0 {
		p.config.Patience = patience
	}
	if p.config.Files <= 0 {
		p.config.Files = filelimit.Limit()
	}
	p.wrong = bounds.NewBuckets[netip.Prefix](wrongCodes, wrongNetworks)
	p.guesses = bounds.NewBuckets[netip.Prefix](wrongPasswords, wrongNetworks)
	p.making = bounds.NewBuckets[string](newDevices, wrongNetworks)
	p.rooms = newRooms(p.config.Files, p.now, p.log)
	idle := mostKept(p.config.Files)
	p.apps, p.direct = newTransports(p.dialApp, idle), newAppConns(idle)
	p.reverse = p.newReverse()
	return p, nil
}

// Serve takes raw visitor connections from ln, whose RemoteAddr is the
// visitor's, until ctx ends; see gate.Serve.
func (p *Proxy) Serve(ctx context.Context, ln net.Listener) error {
	defer p.direct.closeIdle()
	defer p.apps.closeIdle()
	return gate.Serve(ctx, ln, p.gate())
}

func (p *Proxy) gate() gate.Config {
	var asks func(string) *x509.CertPool
	if p.config.DeviceAuthority != nil {
		asks = p.asksCertificate
	}
	return gate.Config{
		TLS: p.config.TLS, Asks: asks, Handler: p, Files: p.config.Files, LetInWithin: p.config.DecideWithin,
		CutOff: func() { p.config.Access.CloseAll() }, Refused: p.refusedTLS, Log: p.log,
		Broken: func(any) { p.broken.Add(1) }, Crowded: func() { p.crowded.Store(p.now().Unix()) },
	}
}

// Broken is how often reading requests failed by a fault of ours; each time has cost a
// visitor their connection.
func (p *Proxy) Broken() int { return int(p.broken.Load()) }

// Crowded is when visitors last had all the connections or the memory they may have; zero for
// never.
func (p *Proxy) Crowded() time.Time {
	if at := p.crowded.Load(); at != 0 {
		return time.Unix(at, 0)
	}
	return time.Time{}
}

// Package relay is the public listener of a node: it finds out from the first bytes of
// each connection whose it is, and joins visitors to the computers they name.
//
// A TLS ClientHello is read for its server name. The auth host's connections are
// decrypted here and go to the control plane's handler, or, by their ALPN, become
// an agent's control connection or a data connection inside TLS. A name of a
// computer goes to that computer's tunnel, undecrypted: the visitor is given one
// of the data connections its agent has parked here, behind a PROXY header, and
// from then on bytes are copied both ways by the kernel where it can. Everything
// else gets a TLS alert, or the way to HTTPS when it was plain HTTP, and is closed.
//
//	accept.go   connections to the first decision, door.go those that wait for it,
//	            limits.go and ramp.go who is let in, reached.go who is not,
//	            announced.go whom a load balancer in front names
//	preface.go  the first bytes, hello.go the ClientHello in them
//	plainhttp.go who speaks HTTP without TLS
//	refuse.go   how a connection is closed so that it learns why
//	auth.go     what is decrypted here, head.go whose connections give way and the
//	            memory that their requests take
//	session.go  one control connection, deep.go whose stacks handle what it says,
//	            writing.go what it is told, sync.go the snapshots it carries, pool.go
//	            its data connections, herd.go what is done when many have come
//	route.go    which computers are here, admitted.go who has been let in there
//	visit.go    a visitor's way, copy.go its bytes, splice_*.go where the kernel moves
//	            them, aborted.go visits that the agent says it ended
//	own.go      own domains, and the hosts they lead to
//	passing.go  passing visitors on to other nodes (package peers), and taking them over,
//	            come.go having the agent come to where its visitors are
//	stats.go    what is counted; socket_*.go what the system is asked of a socket
//
// The relay holds no key of a computer and never sees what a visit carries:
// addresses, host names and numbers of bytes are all it knows.
package relay

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/proxy/http2"
	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/relay/clienthello"
	"porchlight/control/relay/peers"
	"porchlight/internal/bounds"
	"porchlight/internal/filelimit"
	"porchlight/internal/socket"
)

// Config of a Relay. AuthHost, TLS, Handler, Authenticate and Sync are required.
type Config struct {
	// AuthHost is the host name, without a port, whose TLS ends here.
	AuthHost string
	// Domain is the parent of every computer's root host, and PublicPort the port of
	// their addresses, 0 for 443: who speaks plain HTTP is sent on there. Without a
	// domain only the computers that are here are known.
	Domain     string
	PublicPort int
	// TLS holds the auth host's certificate. Its NextProtos are replaced.
	TLS *tls.Config
	// Handler answers HTTP on the auth host: the control plane.
	Handler http.Handler
	// TooLong marks the header of a request over HTTP/2 whose head was too long, as
	// http2.Config says.
	TooLong func(h http.Header, cookies, rest, fields int)
	// Authenticate says whose a device credential is. An error with a
	// *controlapi.Error of code CodeUnauthorized in it is told the agent as a
	// refusal of the credential, any other as trouble that passes.
	Authenticate func(ctx context.Context, credential string) (controlapi.Computer, error)
	// Sync begins to tell the agent with a credential its snapshots, in JSON, and returns
	// at once. version is that of the snapshot the agent has. tell is called with each
	// snapshot of another version; with nil, first and once, where the agent has the
	// newest. over is called when it cannot go on; the agent is told the error where that
	// is a *controlapi.Error. Neither is called after stop has returned, and neither may
	// call stop. The relay does not know what a snapshot says.
	Sync func(credential string, client netip.Addr, version string, tell func(snapshot []byte) error, ended func(error)) (stop func())
	// Knows keeps whether the agent of a computer knows grants for some apps, where it says
	// something else than Authenticate did. It ends with ctx. nil keeps nothing.
	Knows func(ctx context.Context, computerID string, appGrants bool) error
	// Own says where a name that is not below Domain leads: a host that is, as far as it is
	// proven to now, or nowhere. It answers within about a second. nil for nowhere.
	Own func(ctx context.Context, name string) (host string, err error)
	// Carried, if set, is told of each visit that has ended, with its bytes up and down.
	Carried func(computerID string, up, down int64)
	// Node is this relay's name, told to agents for their logs.
	Node string
	// Limits; zero fields take defaults.
	Limits Limits
	// Grace is how long visits may go on after Serve is told to end. Default 10 s.
	Grace time.Duration
	// VisitorWait is how long a visitor waits for a data connection. Default 10 s.
	VisitorWait time.Duration
	// FirstBytes is how long a connection may take to say what it wants. Default 3 s.
	FirstBytes time.Duration
	// FirstRequest is how long one to the auth host may take to ask for something.
	// Default 10 s.
	FirstRequest time.Duration
	Log          *slog.Logger
	Now          func() time.Time
	// Date is the time that agents are told, which has to be that of the control plane's
	// answers; intervals go by Now. nil means this machine's.
	Date func() time.Time
	// TrustedProxies are the load balancers in front: a connection from these
	// networks must begin with a PROXY header, version 1 or 2, and counts as the
	// visitor's that it names. Nobody else's header is read.
	TrustedProxies []netip.Prefix
	// Peers makes this relay one of several; nil means that it is alone.
	// Node, Holds, Now and Log of it are filled in by New.
	Peers *peers.Config
}

// Relay is made by New and works while Serve runs. Its methods are safe for
// concurrent use.
type Relay struct {
	cfg        Config
	tls        *tls.Config
	log        *slog.Logger
	now        func() time.Time
	door       *door
	auth       *door // HTTP connections to the auth host
	heads      *door // what strangers hold of heads, see head.go
	knownHeads *door
	visitors   *bySource
	ramp       *ramp
	tickets    ticketBook
	routes     routes
	deep       deepStacks
	herd       herd
	counters   counters
	namedAt    namedAt
	refusals   bounds.Minute  // of control connections, as the log tells them
	http       *http.Server   // of the auth host, for HTTP/1.1
	http2      *http2.Server  // and for HTTP/2
	toHTTP     *socket.Handed // connections that have been decrypted

	collecting  sync.Mutex // protects collectNext, and is held meanwhile
	collectNext time.Time

	mostFiles int          // open files, beyond which strangers get none
	crowdedAt atomic.Int64 // when they last were as many, in nanoseconds

	peers         *peers.Peers // nil without
	peersEntering chan struct{}

	serving  atomic.Bool
	draining atomic.Bool
	wg       sync.WaitGroup // goroutines of connections
}

// maxHead is how many bytes of a request's head are read, so that the handler can
// answer what it finds too large: all the cookies a browser keeps for a site.
const maxHead = 1 << 20

// requestWait is how long a request to the auth host may take to arrive, and
// its answer to be taken.
const requestWait = 30 * time.Second

// New checks cfg and starts nothing.
func New(cfg Config) (*Relay, error) {
	switch {
	case clienthello.HostName(cfg.AuthHost) == "":
		return nil, errors.New("relay: the auth host is not a host name")
	case cfg.TLS == nil || cfg.Handler == nil || cfg.Authenticate == nil || cfg.Sync == nil:
		return nil, errors.New("relay: TLS, Handler, Authenticate and Sync are required")
	}
	cfg.AuthHost, cfg.Domain = clienthello.HostName(cfg.AuthHost), clienthello.HostName(cfg.Domain)
	cfg.Limits = cfg.Limits.WithDefaults()
	for field, value := range map[*time.Duration]time.Duration{
		&cfg.Grace: 10 * time.Second, &cfg.VisitorWait: 10 * time.Second, &cfg.FirstBytes: 3 * time.Second,
		&cfg.FirstRequest: 10 * time.Second,
	} {
		if *field <= 0 {
			*field = value
		}
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Date == nil {
		cfg.Date = time.Now
	}
	r := &Relay{
		cfg:   cfg,
		tls:   cfg.TLS.Clone(),
		log:   cfg.Log,
		now:   cfg.Now,
		door:  newDoor(cfg.Limits.Handshakes, cfg.Limits.HandshakesPerSource),
		auth:  newDoor(cfg.Limits.AuthConnections, cfg.Limits.AuthConnectionsPerSource),
		heads: newHeadDoor(cfg.Limits),
		// Of those who are known, who come by whatever addresses.
		knownHeads: newDoor(heldByKnown/heldPart, heldByKnown/heldPart),
		visitors:   newBySource(cfg.Limits.Visitors, cfg.Limits.VisitorsPerSource),
		ramp:       newRamp(cfg.Limits.AdmitPerSecond, cfg.Limits.AdmitPerSecondPerSource, cfg.Limits.RampUp, cfg.Now),
		routes:     newRoutes(cfg.Limits),
		deep:       make(deepStacks, deepKept),
		herd:       herd{giveBack: debug.FreeOSMemory},
		toHTTP:     socket.NewHanded(),
	}
	// Whoever signed in once is known, so the last places are of those who are here now.
	r.auth.mostKept -= min(1024, cfg.Limits.AuthConnections/4)
	files := filelimit.Limit()
	r.mostFiles = files - kept(files)
	r.tls.NextProtos = append([]string{controlapi.TunnelALPN, tunnelwire.DataALPN, "h2", "http/1.1"}, controlapi.TunnelsBefore...)
	r.tls.MinVersion = max(r.tls.MinVersion, tls.VersionTLS12)
	r.http = newHTTPServer(cfg)
	r.http2 = http2.New(http2.Config{Handler: within(r.http.Handler), TooLong: cfg.TooLong, Log: cfg.Log})
	if cfg.Peers == nil {
		return r, nil
	}
	own := *cfg.Peers
	own.Node, own.Holds, own.Now, own.Log = cfg.Node, r.routes.holds, cfg.Now, cfg.Log
	r.peersEntering = make(chan struct{}, peersEntering)
	var err error
	r.peers, err = peers.New(own)
	return r, err
}

// newHTTPServer serves the auth host. Connections arrive at it decrypted.
func newHTTPServer(cfg Config) *http.Server {
	return &http.Server{
		Handler:           countHeads(logPanics(cfg.Handler, cfg.Log)),
		ConnContext:       withHead,
		ReadHeaderTimeout: 10 * time.Second,
		// A handler that holds its answer back sets deadlines of its own.
		ReadTimeout:    requestWait,
		WriteTimeout:   requestWait,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: maxHead,
		ErrorLog:       slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
}

// logPanics is next whose panics are told with where they came from, and cost no other request
// of the connection.
func logPanics(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer func() {
			what := recover()
			if what == nil {
				return
			}
			if what != http.ErrAbortHandler { //nolint:errorlint // a panic is no chain of errors
				log.Error("a request met a fault of ours", "fault", fmt.Sprint(what), "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}()
		next.ServeHTTP(w, req)
	})
}

// within has next's requests over HTTP/2 arrive, and their answers be taken, within the
// time that those over HTTP/1.1 have.
func within(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		until, on := time.Now().Add(requestWait), http.NewResponseController(w)
		_ = on.SetReadDeadline(until) // it has both
		_ = on.SetWriteDeadline(until)
		next.ServeHTTP(w, req)
	})
}

// Serve accepts on listeners, which it closes, until ctx ends or one of them
// fails for good. Then it drains: agents are told to go elsewhere, requests to the
// auth host and visits may finish within the grace, and everything is closed. It
// returns nil after ctx has ended, and can be called once.
func (r *Relay) Serve(ctx context.Context, listeners ...net.Listener) error {
	if len(listeners) == 0 {
		return errors.New("relay: no listener")
	}
	if !r.serving.CompareAndSwap(false, true) {
		return errors.New("relay: Serve was called before")
	}
	// life ends when nothing may go on any longer.
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()

	failed := make(chan error, len(listeners)+1)
	var accepting sync.WaitGroup
	for _, l := range listeners {
		accepting.Go(func() { failed <- r.accept(life, l, r.welcome) })
	}
	// Other nodes send their visitors, and read where tunnels are, until the
	// last one here has been served.
	peering, stopPeering := context.WithCancel(life)
	defer stopPeering()
	var others sync.WaitGroup
	if p := r.cfg.Peers; p != nil {
		others.Go(func() { failed <- r.accept(life, p.Listener, r.welcomePeer) })
		others.Go(func() { r.peers.Run(peering) })
	}
	var httpDone sync.WaitGroup
	httpDone.Go(func() { _ = r.http.Serve(r.toHTTP) })

	var result error
	select {
	case <-ctx.Done():
	case result = <-failed:
		result = fmt.Errorf("relay: accept connections: %w", result)
	}
	r.draining.Store(true)
	for _, l := range listeners {
		_ = l.Close()
	}
	accepting.Wait()
	if r.peers != nil {
		r.peers.Drain()
	}
	r.drain()
	stopPeering()
	if r.cfg.Peers != nil {
		_ = r.cfg.Peers.Listener.Close()
	}
	others.Wait()
	kill()
	for _, s := range r.routes.sessions() { // admitted while the others were ended
		s.end()
	}
	r.wg.Wait()
	r.deep.end()
	_ = r.toHTTP.Close()
	httpDone.Wait()
	return result
}

// drain lets what is under way finish within the grace and then closes it.
func (r *Relay) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Grace)
	defer cancel()
	for _, s := range r.routes.sessions() {
		s.drain()
	}
	r.door.close()
	ended := make(chan error, 1)
	go func() { ended <- r.http2.Shutdown(ctx) }()
	if err := errors.Join(r.http.Shutdown(ctx), <-ended); err != nil {
		_ = r.http.Close()
		r.http2.Close()
	}
	r.awaitQuiet(ctx)
	r.endTunnels(ctx)
}

// awaitQuiet waits until no visitor is left, or ctx ends.
func (r *Relay) awaitQuiet(ctx context.Context) {
	select {
	case <-r.routes.quietened():
	case <-ctx.Done():
	}
}

// endTunnels ends the tunnels, and then what is left of the visits. Other nodes send
// visitors for as long as there are tunnels here: who came after the last one had left may
// finish, too.
func (r *Relay) endTunnels(ctx context.Context) {
	for _, s := range r.routes.sessions() {
		s.end(tunnelwire.Frame{Type: tunnelwire.Refused, Code: tunnelwire.CodeUnavailable, Message: "The relay is going away."})
	}
	r.awaitQuiet(ctx)
	r.routes.abortAll()
}

// Kick ends the tunnels of a computer and every visit through them: its
// credential was replaced or it was removed. An agent that authenticates at the
// same moment is asked again.
func (r *Relay) Kick(computerID string) {
	for _, s := range r.routes.kick(computerID, "") {
		s.end(credentialEnded)
	}
	r.routes.abort(computerID, "")
}

// Suspend has the visits of a computer cut off ten seconds after since, obeyed or not, and
// lets no other begin, until it is called with the zero time.
func (r *Relay) Suspend(computerID string, since time.Time) {
	r.routes.suspend(computerID, since, r.cfg.Date())
}

// credentialEnded is the last that a session is told whose credential is not good.
var credentialEnded = tunnelwire.Frame{Type: tunnelwire.Refused, Code: tunnelwire.CodeUnauthorized, Message: "This computer's credential is not valid any more."}

// Package localapi serves the loopback API: what local apps ask to be published
// with, and what the owner decides with (the interface, Endpoints; the design,
// Loopback API).
//
// A request comes in by one of two listeners, TCP on the loopback address or the
// owner's unix socket. The guard turns away everything that a web page could
// have sent. One table then says which handler it goes to and which tier it
// needs; admit is the only place that checks a tier. Handlers decide nothing:
// they turn a request into a call of the room that does.
//
// The package never serves on an address that another computer can reach, and
// never answers with anything but JSON, or events for the owner.
package localapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/people"
	"porchlight/agent/procinfo"
	"porchlight/agent/settings"
	"porchlight/internal/broadcast"
)

// Bounds of a connection. They are generous for a program on this computer and
// keep one that hangs from holding much.
const (
	readHeaderIn = 5 * time.Second
	readBodyIn   = 10 * time.Second
	writeIn      = 10 * time.Second
	idleFor      = time.Minute
	maxHeader    = 16 << 10 // bytes
	maxConns     = 512      // of each listener; see entry for other users' share
	drainFor     = 5 * time.Second
	freshFor     = time.Second // for the request of one who has just connected
)

// Link is how this computer stands with its control plane.
type Link struct {
	Account agentapi.Account
	Trouble string // a sentence about what keeps visitors out, or empty
	// Reachable is true while the control plane answers and a relay sends visitors,
	// Away while there is a control plane that does not answer.
	Reachable, Away bool
}

// Config of New. Fields without a remark are required.
type Config struct {
	Settings *settings.Settings
	Access   *access.Access
	Apps     *engine.Apps
	Registry *engine.Registry
	Users    *engine.Users
	People   *people.People
	// Changes is raised after anything that the owner's state shows has changed.
	Changes *broadcast.Signal
	// Info is what does not change while the engine runs.
	Info agentapi.EngineInfo
	// Link is called for each answer that tells of it.
	Link func() Link
	// Announce returns when the control plane knows of an app that went live, or has
	// had its time for that; nil where nobody has to know.
	Announce func(ctx context.Context)
	// Certificate is what is known of the certificate of a live app, by name; nil for
	// nothing, and to say nothing.
	Certificate func(name string) *agentapi.Certificate
	// MakeLink makes a one-time link that signs the owner in at an app, or at the
	// launcher for an empty name.
	MakeLink func(name string) (url string, expires time.Time, err error)
	// Outbox lists the mails kept on this computer, newest first; nil where the
	// control plane is elsewhere. OutboxSize counts them without reading them; nil
	// counts the list.
	Outbox     func(ctx context.Context) ([]agentapi.Mail, error)
	OutboxSize func(ctx context.Context) (int, error)
	// OwnerSecretHash is the SHA-256 of the owner secret; while it is empty the
	// owner tier refuses everybody.
	OwnerSecretHash func() []byte
	// DeskSecretHash is the SHA-256 of what the menu bar of this very process
	// shows instead, for as long as it runs; nil for none. It opens what only looks
	// or takes away, also while the keychain keeps the owner secret from everybody.
	DeskSecretHash []byte
	Connector      Connector    // nil refuses to connect to anything
	Log            *slog.Logger // discarded when nil
}

// API is made by New and serves once.
type API struct {
	cfg    Config
	log    *slog.Logger
	routes []route
	states states
	// addr is the open tier's host:port; written by Serve before it serves.
	addr string

	heartbeat time.Duration // agentapi.Heartbeat outside the tests
	// outermost wraps each listener's handler in the tests, which look at every
	// answer there.
	outermost func(http.Handler) http.Handler
	// userOf is procinfo.CallerUser outside the tests.
	userOf  func(from, to netip.AddrPort) procinfo.Process
	paces   paces
	streams chan struct{} // a place for each open stream of events
	ending  chan struct{} // closed when Serve ends: streams end first
	endOnce sync.Once
}

// tier says who may call a route.
type tier int

const (
	tierOpen       tier = iota // any program on this computer
	tierCapability             // a program that registered with this run of the engine
	tierOwner                  // the owner: on the owner's socket, with the owner secret
	tierTake                   // the owner, or the menu bar before it has that secret: looks, or takes away
)

type route struct {
	method string
	path   string // of an http.ServeMux, without method
	tier   tier
	serve  func(http.ResponseWriter, *http.Request) error
}

// New starts nothing; see Serve.
func New(cfg Config) *API {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{
		cfg:       cfg,
		log:       cfg.Log,
		heartbeat: agentapi.Heartbeat,
		outermost: func(h http.Handler) http.Handler { return h },
		userOf:    procinfo.CallerUser,
		paces:     newPaces(),
		streams:   make(chan struct{}, maxStreams),
		ending:    make(chan struct{}),
	}
	a.states.seq = uint64(time.Now().UnixMicro())
	a.routes = []route{
		{"POST", "/publish", tierOpen, a.publish},
		{"GET", "/publish/{name}", tierOpen, a.publication},
		{"DELETE", "/publish/{name}", tierOpen, a.withdraw},
		{"GET", "/status", tierOpen, a.status},
		{"GET", "/engine/info", tierOpen, a.engineInfo},
		{"POST", "/engine/register", tierOpen, a.register},
		{"POST", "/engine/heartbeat", tierOpen, a.beat},
		{"POST", "/engine/deregister", tierOpen, a.deregister},

		{"GET", "/people", tierCapability, a.listed},
		{"POST", "/people/invite", tierCapability, a.byProgram(a.invite)},
		{"POST", "/people/grant", tierCapability, a.byProgram(a.grant)},
		{"POST", "/people/revoke", tierCapability, a.byProgram(a.remove)},

		{"GET", "/owner/state", tierTake, a.ownerState},
		{"GET", "/owner/events", tierTake, a.ownerEvents},
		{"GET", "/owner/account", tierTake, a.ownerAccount},
		{"GET", "/owner/outbox", tierOwner, a.ownerOutbox},
		{"POST", "/owner/connect", tierOwner, a.connect},
		{"DELETE", "/owner/connect", tierOwner, a.cancelConnect},
		{"POST", "/owner/disconnect", tierOwner, a.disconnect},
		{"POST", "/owner/apps/{name}/approve", tierOwner, a.approve},
		{"POST", "/owner/apps/{name}/deny", tierTake, a.deny},
		{"POST", "/owner/apps/{name}/stop", tierTake, a.pause}, // its name for older programs
		{"POST", "/owner/apps/{name}/revoke", tierTake, a.revoke},
		{"POST", "/owner/open", tierOwner, a.open},
		{"POST", "/owner/apps/{name}/open", tierOwner, a.open},
		{"POST", "/owner/apps/{name}/unmute", tierOwner, a.unmute},
		{"POST", "/owner/apps/{name}/pause", tierTake, a.pause},
		{"POST", "/owner/apps/{name}/resume", tierOwner, a.resume},
		{"PATCH", "/owner/apps/{name}/options", tierOwner, a.setOptions},
		{"PUT", "/owner/apps/{name}/options", tierOwner, a.setOptions},
		{"GET", "/owner/people", tierTake, a.ownerPeople},
		{"POST", "/owner/people/invite", tierOwner, byOwner(a.invite)},
		{"POST", "/owner/people/grant", tierTake, byOwner(a.grant)},
		{"POST", "/owner/people/revoke", tierTake, byOwner(a.remove)},
		{"POST", "/owner/people/undo", tierTake, a.undoHeld},
		{"POST", "/owner/people/settle", tierTake, a.settleHeld},
		{"GET", "/owner/visitors", tierTake, a.visitors},
		{"POST", "/owner/visitors/disconnect", tierTake, a.disconnectVisitor},
		{"GET", "/owner/grants", tierTake, a.grants},
		{"POST", "/owner/grants/{id}/revoke", tierTake, a.revokeGrant},
		{"POST", "/owner/notices/{id}/undo", tierOwner, a.undo},
		{"POST", "/owner/notices/{id}/seen", tierTake, a.see},
		{"POST", "/owner/dark", tierTake, a.goDark},
		{"DELETE", "/owner/dark", tierOwner, a.lightUp},
		{"GET", "/owner/activity", tierTake, a.activity},
		{"DELETE", "/owner/activity", tierOwner, a.clearActivity},
		{"GET", "/owner/users", tierTake, a.users},
		{"POST", "/owner/users/{id}/allow", tierOwner, a.allowUser},
		{"POST", "/owner/users/{id}/deny", tierTake, a.denyUser},
		{"DELETE", "/owner/users/{id}", tierOwner, a.forgetUser},
		{"GET", "/owner/settings", tierTake, a.settings},
		{"PUT", "/owner/settings", tierOwner, a.setSettings},
	}
	return a
}

// Serve serves the open tier on open and all tiers on owner until ctx ends, and
// closes both. It refuses an open listener that other computers can reach.
// Requests under way may finish for a few seconds; it returns nil when ctx ended.
func (a *API) Serve(ctx context.Context, open, owner net.Listener) error {
	openDoor, err := tcpDoor(open.Addr())
	if err != nil {
		return errors.Join(err, open.Close(), owner.Close())
	}
	a.addr = open.Addr().String()
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range []struct {
		listener net.Listener
		door     door
	}{{a.newEntry(open), openDoor}, {netutil.LimitListener(owner, maxConns), ownerDoor}} {
		var fresh fresh
		server := &http.Server{
			Handler:                      fresh.handler(a.outermost(a.handler(s.door))),
			ConnContext:                  fresh.accepted,
			ConnState:                    fresh.changed,
			DisableGeneralOptionsHandler: true, // nothing before the guard
			ReadHeaderTimeout:            readHeaderIn,
			ReadTimeout:                  readBodyIn,
			IdleTimeout:                  idleFor,
			MaxHeaderBytes:               maxHeader,
			ErrorLog:                     slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
		}
		served := make(chan struct{})
		g.Go(func() error {
			defer close(served)
			err := server.Serve(s.listener)
			if errors.Is(err, http.ErrServerClosed) || ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("the loopback API stopped: %w", err)
		})
		g.Go(func() error {
			<-ctx.Done()
			a.endOnce.Do(func() { close(a.ending) })
			closed := s.listener.Close()
			<-served // so that whoever was accepted is known
			fresh.wait(freshFor)
			drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
			defer cancel()
			if err := server.Shutdown(drain); err != nil {
				a.log.Warn("requests were cut off", "err", err)
				return server.Close()
			}
			return closed
		})
	}
	return g.Wait()
}

// handler is everything behind one listener.
func (a *API) handler(from door) http.Handler {
	byPath := map[string][]route{}
	for _, rt := range a.routes {
		byPath[rt.path] = append(byPath[rt.path], rt)
	}
	mux := http.NewServeMux()
	for path, routes := range byPath {
		mux.Handle(path, a.dispatch(from, path, routes))
	}
	mux.Handle("/", a.dispatch(from, "/", nil))
	return guard(from, mux, a.fail)
}

// dispatch picks the route of a path by method, and answers for it.
func (a *API) dispatch(from door, path string, routes []route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := func() error {
			for _, rt := range routes {
				// HEAD goes with GET (RFC 9110, section 9.3.2); net/http drops the body.
				if rt.method != r.Method && (rt.method != http.MethodGet || r.Method != http.MethodHead) {
					continue
				}
				if err := a.admit(rt.tier, from, r); err != nil {
					return err
				}
				return rt.serve(w, r)
			}
			return noRoute(w, routes)
		}()
		a.log.Debug("request", "method", r.Method, "route", path, "ok", err == nil)
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

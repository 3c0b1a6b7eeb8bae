package localapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/procinfo"
	"porchlight/internal/broadcast"
	"porchlight/internal/words"
)

// ServerConfig of NewServer. DataDir and Address are required.
type ServerConfig struct {
	// DataDir is where DATA/agent.json says where the server listens.
	DataDir string
	// Address is where the open tier listens, host:port; port 0 picks one.
	Address string
	// Registry says how the registry of programs works; Changes is filled in.
	Registry engine.RegistryConfig
	// OwnerSecretHash is the SHA-256 of the owner secret; while it is empty the
	// owner tier refuses everybody. See also SetOwnerSecretHash.
	OwnerSecretHash []byte
	// DeskSecretHash is the SHA-256 of what the menu bar of this process
	// shows instead, for as long as it runs; nil for none. It opens what only looks
	// or takes away, also while the keychain keeps the owner secret from everybody.
	DeskSecretHash []byte
	Connector      Connector    // nil refuses to connect to anything
	Log            *slog.Logger // discarded when nil
}

// Server is the loopback API as the programs of this computer see it, for as long
// as the process lives: its two listeners, who is registered, and who is the owner.
// The agent behind it may be replaced (see API): requests that come in between two
// agents wait for the next one, and so does a stream of events, which then goes on.
//
// It is safe for concurrent use.
type Server struct {
	cfg        ServerConfig
	log        *slog.Logger
	secretHash atomic.Pointer[[]byte] // never nil; see SetOwnerSecretHash
	current    atomic.Pointer[API]    // of the agent that came last; nil before the first
	registry   *engine.Registry       // of the programs attached to this run of the engine
	changes    broadcast.Signal       // see Changes
	stopping   chan struct{}          // closed when no other agent will come
	streams    chan struct{}          // a place for each open stream of events

	open, owner net.Listener // nil before Listen; not changed after it
	socket      string       // the path of owner

	heartbeat time.Duration // agentapi.Heartbeat outside the tests
	headerIn  time.Duration // readHeaderIn outside the tests
	told      chan struct{} // see Told

	// outermost wraps each listener's handler in the tests, which look at every
	// answer there.
	outermost func(http.Handler) http.Handler
	// userOf is procinfo.CallerUser outside the tests.
	userOf func(from, to netip.AddrPort) procinfo.Process
}

// NewServer starts nothing; see Listen and Run.
func NewServer(cfg ServerConfig) *Server {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Connector = cmp.Or(cfg.Connector, Connector(noConnector{}))
	s := &Server{
		cfg:       cfg,
		log:       cfg.Log,
		stopping:  make(chan struct{}),
		told:      make(chan struct{}),
		streams:   make(chan struct{}, maxStreams),
		heartbeat: agentapi.Heartbeat,
		headerIn:  readHeaderIn,
		outermost: func(h http.Handler) http.Handler { return h },
		userOf:    procinfo.CallerUser,
	}
	s.secretHash.Store(&cfg.OwnerSecretHash)
	cfg.Registry.Changes = &s.changes
	s.registry = engine.NewRegistry(cfg.Registry)
	return s
}

// SetOwnerSecretHash is for an owner secret that became known only now, because the
// keychain was locked. Nobody is disconnected for it.
func (s *Server) SetOwnerSecretHash(hash []byte) {
	s.secretHash.Store(&hash)
	s.changes.Raise()
}

func (s *Server) ownerSecretHash() []byte { return *s.secretHash.Load() }

// Changes is raised after every change that the owner sees, by whatever part, and
// after another agent has come.
func (s *Server) Changes() *broadcast.Signal { return &s.changes }

// Registry keeps the programs that are attached, from one agent to the next.
func (s *Server) Registry() *engine.Registry { return s.registry }

// Listen opens the listeners, unless they are open: who connects from now on is
// answered by the first agent. The errors are sentences for the owner. It comes
// before everything else; call Close when Run is not going to be called.
func (s *Server) Listen() error {
	if s.open != nil {
		return nil
	}
	open, err := listenOpen(s.cfg.Address)
	if err != nil {
		return err
	}
	owner, socket, err := listenForOwner(s.cfg.DataDir)
	if err != nil {
		return errors.Join(err, open.Close())
	}
	s.open, s.owner, s.socket = open, owner, socket
	return nil
}

// Addr is the address of the open tier, host and port.
func (s *Server) Addr() string { return s.open.Addr().String() }

// OwnerSocket is the path of the owner tier's unix socket, or the name of its pipe.
func (s *Server) OwnerSocket() string { return s.socket }

// Told is closed once DATA/agent.json tells commands where it listens.
func (s *Server) Told() <-chan struct{} { return s.told }

// Close closes the listeners. Run does it by itself.
func (s *Server) Close() error {
	if s.open == nil {
		return nil
	}
	return errors.Join(closeOnce(s.open), closeOnce(s.owner))
}

func closeOnce(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Run serves until ctx ends, and closes the listeners; DATA/agent.json says
// meanwhile where they are. It ends after the last agent: once nobody answers at the
// address, the data directory is free. It returns nil when ctx ended.
func (s *Server) Run(ctx context.Context) error {
	open, err := openKind(s.open.Addr())
	if err == nil {
		err = agentapi.WriteRunning(s.cfg.DataDir, agentapi.Running{
			API:         s.Addr(),
			PID:         os.Getpid(),
			Protocol:    agentapi.Protocol,
			OwnerSocket: s.socket,
			StartedAt:   time.Now().UTC().Format(time.RFC3339),
		})
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	close(s.told)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.registry.Run(ctx) })
	g.Go(func() error { return s.serve(ctx, s.newEntry(s.open), open) })
	g.Go(func() error { return s.serve(ctx, newOwnerEntry(s.owner), ownerKind) })
	g.Go(func() error { <-ctx.Done(); close(s.stopping); return nil })
	return errors.Join(g.Wait(), s.Close(), agentapi.RemoveRunning(s.cfg.DataDir))
}

// serve serves on one listener until ctx ends, and lets requests under way finish.
func (s *Server) serve(ctx context.Context, l net.Listener, from listenerKind) error {
	server := &http.Server{
		Handler: s.outermost(s.handler(from)),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		DisableGeneralOptionsHandler: true, // nothing before the guard
		ReadHeaderTimeout:            s.headerIn,
		ReadTimeout:                  readBodyIn,
		IdleTimeout:                  idleFor,
		MaxHeaderBytes:               maxHeader,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
		defer cancel()
		err := server.Shutdown(drain)
		if err != nil {
			s.log.Warn("requests were cut off", "err", err)
			err = server.Close()
		}
		drained <- err
	})
	err := server.Serve(l)
	if stop() {
		return words.Errorf("the loopback API stopped: %w", err)
	}
	return <-drained
}

// connKey is for the net.Conn that a request came by.
type connKey struct{}

// handler is everything behind one listener.
func (s *Server) handler(from listenerKind) http.Handler {
	byPath := map[string][]route{}
	for _, rt := range routes {
		byPath[rt.path] = append(byPath[rt.path], rt)
	}
	mux := http.NewServeMux()
	for path, routes := range byPath {
		mux.Handle(path, s.dispatch(from, path, routes))
	}
	mux.Handle("/", s.dispatch(from, "/", nil))
	return guard(from, mux, s.fail)
}

// dispatch picks the route of a path by method, and answers for it.
func (s *Server) dispatch(from listenerKind, path string, routes []route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := func() error {
			for _, rt := range routes {
				// HEAD goes with GET (RFC 9110, section 9.3.2); net/http drops the body.
				if rt.method != r.Method && (rt.method != http.MethodGet || r.Method != http.MethodHead) {
					continue
				}
				return s.answer(from, rt, w, r)
			}
			return noRoute(w, routes)
		}()
		s.log.Debug("request", "method", r.Method, "route", path, "ok", err == nil)
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// answer has the agent of now answer a request, and the next one while there is
// none. A stream of events outlives its agent: it goes on with the next.
func (s *Server) answer(from listenerKind, rt route, w http.ResponseWriter, r *http.Request) error {
	for {
		api, err := s.agent(w, r)
		if err != nil {
			return err
		}
		if err := api.answer(from, rt, w, r); !errors.Is(err, errGoesOn) {
			return err
		}
	}
}

// agent is that which answers r, after its enter.
func (s *Server) agent(w http.ResponseWriter, r *http.Request) (*API, error) {
	if api := s.current.Load(); api != nil && api.enter() {
		return api, nil
	}
	changed, cancel := s.changes.Subscribe()
	defer cancel()
	// Waiting must not take of the time that the caller has for the body. A writer
	// without deadlines is one of a test, not of a connection.
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Time{})
	for {
		if api := s.current.Load(); api != nil && api.enter() {
			_ = conn.SetReadDeadline(time.Now().Add(readBodyIn))
			return api, nil
		}
		select {
		case <-changed:
		case <-s.stopping:
			return nil, errGone
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

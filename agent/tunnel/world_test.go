package tunnel_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/control/relay"
	"porchlight/internal/broadcast"
	"porchlight/internal/localca"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	authHost   = "control.localhost"
	credential = "credential-of-maya"
	wait       = 60 * time.Second // for anything that must happen
)

// testAuthority signs the certificates of the tests.
var testAuthority = sync.OnceValue(func() *localca.CA {
	dir, err := os.MkdirTemp("", "authority")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ca, err := localca.Create(filepath.Join(dir, "ca"), localca.Options{Names: []string{"localhost"}})
	if err != nil {
		panic(err)
	}
	return ca
})

// issued are certificates of the test's authority, one a name.
func issued(names ...string) (all []tls.Certificate) {
	for _, name := range names {
		certificate, err := testAuthority().Issue(name)
		if err != nil {
			panic(err)
		}
		all = append(all, *certificate)
	}
	return all
}

// world is a relay, an agent's tunnel to it and an app behind it.
type world struct {
	t      *testing.T
	relay  *relay.Relay
	addr   string // where visitors go
	tunnel *tunnel.Tunnel
	log    *syncBuffer

	stopRelay  func()
	stopTunnel func()
}

type options struct {
	relay  func(*relay.Config)
	tunnel func(*tunnel.Config)
	// via is the address agents dial instead of the relay's, given that.
	via func(relayAddr string) string
	// app serves one decrypted visit; nil echoes.
	app func(*tls.Conn)
	// raw takes the visitors undecrypted instead.
	raw func(net.Conn)
}

func authenticate(_ context.Context, c string) (controlapi.Computer, error) {
	if c != credential {
		return controlapi.Computer{}, &controlapi.Error{Code: controlapi.CodeUnauthorized, Message: "unknown"}
	}
	return controlapi.Computer{ID: "computer-1", Name: "maya", Host: "maya.localhost:8443"}, nil
}

func startRelay(t *testing.T, addr string, log *slog.Logger, change func(*relay.Config)) (r *relay.Relay, at string, stop func()) {
	t.Helper()
	cfg := relay.Config{
		AuthHost: authHost, TLS: &tls.Config{Certificates: issued(authHost)},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Proto+" "+r.Host+r.URL.Path)
		}),
		Authenticate: authenticate, Node: "node-1", Grace: time.Second, Log: log,
		Sync: func(string, netip.Addr, string, func([]byte) error, func(error)) func() { return func() {} },
	}
	if change != nil {
		change(&cfg)
	}
	r = programs.Got(relay.New(cfg))(t)
	l := programs.Got(relay.Listen(t.Context(), addr))(t)
	stop = programs.Run(t, func(ctx context.Context) error { return r.Serve(ctx, l) })
	return r, l.Addr().String(), stop
}

func start(t *testing.T, o options) *world {
	t.Helper()
	w := &world{t: t, log: &syncBuffer{}}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.relay, w.addr, w.stopRelay = startRelay(t, programs.FreeAddress(t), log, o.relay) // where another may follow it
	to := w.addr
	if o.via != nil {
		to = o.via(w.addr)
	}
	cfg := toRelays(to)
	cfg.Log = log
	if o.tunnel != nil {
		o.tunnel(&cfg)
	}
	w.tunnel = programs.Got(tunnel.New(cfg))(t)
	w.stopTunnel = w.run(o)
	return w
}

// toRelays is the config of a tunnel of the tests' computer to the relays at addresses.
func toRelays(addresses ...string) tunnel.Config {
	return tunnel.Config{
		Open: never, Opened: nothing, Relays: listOf(addresses...), Credential: func() string { return credential }, RootCAs: testAuthority().Pool(),
	}
}

// anew runs another tunnel in place of the one there is, which goes home after so long, or as
// usual.
func (w *world) anew(cfg tunnel.Config, home time.Duration) {
	w.t.Helper()
	w.stopTunnel()
	cfg.Log = slog.New(slog.NewTextHandler(w.log, nil))
	w.tunnel = programs.Got(tunnel.New(cfg))(w.t)
	if home > 0 {
		tunnel.GoHomeAfter(w.tunnel, home)
	}
	w.run(options{})
}

// never and nothing are of a computer where nothing is ever open.
func never() bool { return false }

func nothing() (<-chan struct{}, func()) { return new(broadcast.Signal).Subscribe() }

// run runs the tunnel and the app behind it.
func (w *world) run(o options) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := make(map[net.Conn]bool)
	wg.Go(func() {
		if err := w.tunnel.Run(ctx); err != nil {
			w.t.Errorf("tunnel: %v", err)
		}
	})
	wg.Go(func() {
		config := &tls.Config{
			Certificates: issued("maya.localhost", "notes.maya.localhost"),
			NextProtos:   []string{"acme-tls/1", "echo"},
		}
		for {
			conn, err := w.tunnel.Listener().Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			wg.Go(func() {
				defer func() {
					_ = conn.Close()
					mu.Lock()
					delete(open, conn)
					mu.Unlock()
				}()
				if o.raw != nil {
					o.raw(conn)
					return
				}
				secure := tls.Server(conn, config)
				if secure.Handshake() != nil {
					return
				}
				if o.app != nil {
					o.app(secure)
					return
				}
				_, _ = io.Copy(secure, secure)
				_ = secure.CloseWrite()
			})
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	w.t.Cleanup(stop)
	return stop
}

// connected waits until the tunnel's Connected is want.
func (w *world) connected(want bool) {
	w.t.Helper()
	timeout := time.After(wait)
	for {
		changes := w.tunnel.Changes()
		if w.tunnel.Connected() == want {
			return
		}
		select {
		case <-changes:
		case <-timeout:
			w.t.Fatalf("Connected stayed %v; log:\n%s", !want, w.log)
		}
	}
}

func visitorConfig(name string, protocols ...string) *tls.Config {
	return &tls.Config{ServerName: name, RootCAs: testAuthority().Pool(), NextProtos: protocols}
}

// visit connects as a browser does.
func (w *world) visit(name string, protocols ...string) (*tls.Conn, error) {
	conn, err := net.DialTimeout("tcp", w.addr, wait)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(3 * wait))
	secure := tls.Client(conn, visitorConfig(name, protocols...))
	if err := secure.Handshake(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

func (w *world) mustVisit(name string, protocols ...string) *tls.Conn {
	w.t.Helper()
	conn, err := w.visit(name, protocols...)
	if err != nil {
		w.t.Fatalf("visit %s: %v; log:\n%s", name, err, w.log)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// echo sends b and wants it back.
func echo(conn net.Conn, b []byte) error {
	if _, err := conn.Write(b); err != nil {
		return err
	}
	back := make([]byte, len(b))
	if _, err := io.ReadFull(conn, back); err != nil {
		return err
	}
	if !bytes.Equal(b, back) {
		return io.ErrNoProgress
	}
	return nil
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// middlebox stands between agent and relay, records what passes and can refuse
// what does not begin like TLS, or swallow it.
type middlebox struct {
	to string

	mu       sync.Mutex
	mode     string // "", "tls only", "swallow"
	recorded [][]byte
	raw, tls int
	conns    []net.Conn
	cut      bool
}

func startMiddlebox(t *testing.T, to, mode string) (*middlebox, string) {
	t.Helper()
	m := &middlebox{to: to, mode: mode}
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	programs.ServeConns(t, l, m.pass)
	t.Cleanup(m.cutAll)
	return m, l.Addr().String()
}

func (m *middlebox) track(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut {
		_ = conn.Close()
		return false
	}
	m.conns = append(m.conns, conn)
	return true
}

func (m *middlebox) cutAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = true
	for _, c := range m.conns {
		_ = c.(*net.TCPConn).SetLinger(0) // as when the network is gone
		_ = c.Close()
	}
}

func (m *middlebox) pass(conn net.Conn) {
	if !m.track(conn) {
		return
	}
	first := make([]byte, 64<<10)
	n, err := conn.Read(first)
	if err != nil {
		return
	}
	m.mu.Lock()
	mode := m.mode
	if first[0] == 0x16 {
		m.tls++
	} else {
		m.raw++
	}
	m.mu.Unlock()
	if first[0] != 0x16 && mode != "" {
		if mode == "swallow" {
			_, _ = io.Copy(io.Discard, conn)
		}
		return
	}
	out, err := net.Dial("tcp", m.to)
	if err != nil {
		return
	}
	defer out.Close()
	if !m.track(out) {
		return
	}
	record := func(b []byte) {
		m.mu.Lock()
		m.recorded = append(m.recorded, bytes.Clone(b))
		m.mu.Unlock()
	}
	record(first[:n])
	_, _ = out.Write(first[:n])
	var wg sync.WaitGroup
	for _, pair := range [][2]net.Conn{{conn, out}, {out, conn}} {
		wg.Go(func() {
			_, _ = io.Copy(pair[1], io.TeeReader(pair[0], writerFunc(record)))
			m.mu.Lock()
			defer m.mu.Unlock()
			if !m.cut { // or the other side would hear of an end in order first
				_ = pair[1].(*net.TCPConn).CloseWrite()
			}
		})
	}
	wg.Wait()
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// saw reports whether what passed on any connection contains b.
func (m *middlebox) saw(b string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.recorded {
		if bytes.Contains(r, []byte(b)) {
			return true
		}
	}
	return false
}

func (m *middlebox) counts() (raw, tls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.raw, m.tls
}

package peers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

var peerSecret = bytes.Repeat([]byte("s"), 32)

// always is of a secret that is never replaced.
func always(secret []byte) Secrets {
	return func() ([][]byte, error) { return [][]byte{secret}, nil }
}

// asks is what a node asks another one for a visitor with, who began so.
func asks(source, destination netip.AddrPort, began string) []byte {
	return appendPeerRequest(nil, source, destination, []byte(began))
}

// keysOf are a node's, made from a secret.
func keysOf(t *testing.T, node string, secret []byte) *keys {
	t.Helper()
	return programs.Got(newKeys(always(secret), node, time.Now))(t)
}

// countingStore counts what is asked of it, and can be away.
type countingStore struct {
	kv.Store
	views atomic.Int64
	turns sync.Map // names of the turns of its calls
	away  atomic.Bool
}

func (s *countingStore) View(ctx context.Context, fn func(kv.Tx) error) error {
	if err := s.viewed(ctx); err != nil {
		return err
	}
	return s.Store.View(ctx, fn)
}

func (s *countingStore) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	if err := s.viewed(ctx); err != nil {
		return err
	}
	return s.Store.ViewOf(ctx, rows, fn)
}

func (s *countingStore) viewed(ctx context.Context) error {
	s.views.Add(1)
	s.turns.Store(kv.TurnOf(ctx), true)
	if s.away.Load() {
		return kv.ErrUnavailable
	}
	return nil
}

func (s *countingStore) Update(ctx context.Context, fn func(kv.Tx) error) error {
	s.turns.Store(kv.TurnOf(ctx), true)
	if s.away.Load() {
		return kv.ErrUnavailable
	}
	return s.Store.Update(ctx, fn)
}

func (s *countingStore) PutAll(ctx context.Context, ttl time.Duration, rows ...kv.Item) error {
	s.turns.Store(kv.TurnOf(ctx), true)
	if s.away.Load() {
		return kv.ErrUnavailable
	}
	return s.Store.PutAll(ctx, ttl, rows...)
}

func sharedStore(t testing.TB, now func() time.Time) *countingStore {
	t.Helper()
	store := programs.Got(kv.Open(t.Context(), "memory:", kv.Options{Now: now}))(t)
	t.Cleanup(func() { _ = store.Close() })
	return &countingStore{Store: store}
}

// directoryOf is one of a node that hears nobody, but for what cfg says.
func directoryOf(cfg Config, node string, now func() time.Time, log *slog.Logger) *Peers {
	cfg.Node, cfg.Now, cfg.Log = node, now, log
	if cfg.Store == nil {
		cfg.Store = &countingStore{}
	}
	if cfg.Secrets == nil {
		cfg.Secrets = always(peerSecret)
	}
	if cfg.Listener == nil {
		cfg.Listener = &net.TCPListener{}
	}
	cfg.Address = cmp.Or(cfg.Address, node+":7443")
	cfg.Domain = cmp.Or(cfg.Domain, "localhost")
	cfg.Relay.Address = cmp.Or(cfg.Relay.Address, node+":443")
	cfg.Holds = func(string) bool { return false }
	if cfg.News == nil {
		cfg.News = func() string { return node + ":7543" }
	}
	if cfg.Hold == nil {
		cfg.Hold = func(string, func(string) bool) {}
	}
	if cfg.Holders == nil {
		cfg.Holders = func(context.Context, string, int) (runs, without []string) { return nil, nil }
	}
	if cfg.Unheard == nil {
		cfg.Unheard = func(time.Duration) []string { return nil }
	}
	p, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return p
}

// clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// runs has a node keep its row and its view until stop is called, or the test ends.
func runs(t *testing.T, p *Peers) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

// sees waits until a node knows how many there are.
func (p *Peers) sees(t *testing.T, count int) {
	t.Helper()
	programs.Eventually(t, fmt.Sprintf("%d nodes are known", count), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.nodes) == count
	})
}

// renews has each of these nodes renew its row, and looks has each read those of all.
func renews(t *testing.T, nodes ...*Peers) {
	t.Helper()
	for _, p := range nodes {
		programs.Must(t, p.renew(t.Context()))
	}
}

func looks(t *testing.T, nodes ...*Peers) {
	t.Helper()
	for _, p := range nodes {
		programs.Must(t, p.look(t.Context()))
	}
}

// finds is which nodes a visitor of this host is passed to, and whether that is for sure.
func (p *Peers) finds(t *testing.T, host string) (names []string, sure bool) {
	t.Helper()
	return p.find(t.Context(), host).named()
}

func (f findings) named() (names []string, sure bool) {
	for _, n := range f.nodes {
		names = append(names, n.Node)
	}
	return names, f.sure
}

// listening is a node at a port of its own, where take gets the visitors of others; refused
// counts those that are not let in.
func listening(t *testing.T, cfg Config, name string, take func(*Conn)) (p *Peers, refused *atomic.Int64) {
	t.Helper()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	cfg.Listener, cfg.Address = l, l.Addr().String()
	p, refused = directoryOf(cfg, name, time.Now, slog.New(slog.DiscardHandler)), &atomic.Int64{}
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				conn, _, err := p.Receive(context.Background(), raw.(*net.TCPConn), make([]byte, 16<<10))
				switch {
				case err != nil:
					refused.Add(1)
					_ = raw.Close()
				case conn != nil:
					take(conn)
				}
			}()
		}
	}()
	return p, refused
}

func declines(c *Conn) { _ = c.Decline() }

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	conn := programs.Got(net.Dial("tcp", addr))(t)
	_ = conn.SetDeadline(time.Now().Add(programs.Patience))
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

func putRow(tx kv.Tx, key string, row any, ttl time.Duration) error {
	value, err := json.Marshal(row)
	if err != nil {
		return err
	}
	return tx.Put(key, value, ttl)
}

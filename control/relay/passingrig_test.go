package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/relay/peers"
	"porchlight/test/programs"
)

var peerSecret = bytes.Repeat([]byte("s"), 32)

// commonStore can be away, and has the hall of its nodes.
type commonStore struct {
	kv.Store
	away atomic.Bool
	hall hall
}

func (s *commonStore) reached() error {
	if s.away.Load() {
		return kv.ErrUnavailable
	}
	return nil
}

func (s *commonStore) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	if err := s.reached(); err != nil {
		return err
	}
	return s.Store.ViewOf(ctx, rows, fn)
}

func (s *commonStore) Update(ctx context.Context, fn func(kv.Tx) error) error {
	if err := s.reached(); err != nil {
		return err
	}
	return s.Store.Update(ctx, fn)
}

func (s *commonStore) PutAll(ctx context.Context, ttl time.Duration, rows ...kv.Item) error {
	if err := s.reached(); err != nil {
		return err
	}
	return s.Store.PutAll(ctx, ttl, rows...)
}

// hall is where the nodes of a store say which tunnels they hold, as by news.
type hall struct {
	mu   sync.Mutex // guards what follows
	runs []string
	held map[string][]string // runs by host, the latest first
	mute bool                // nobody is heard
}

func (h *hall) hold(host, run string, holds bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	others := slices.DeleteFunc(h.held[host], func(r string) bool { return r == run })
	if holds {
		others = append([]string{run}, others...)
	}
	h.held[host] = others
}

func (h *hall) holders(_ context.Context, host string, most int) (runs, without []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if found := h.held[host]; !h.mute && len(found) > 0 {
		return slices.Clone(found[:min(len(found), most)]), nil
	}
	if h.mute {
		return nil, nil
	}
	return nil, slices.Clone(h.runs)
}

// join has a node say what it holds, and ask the others.
func (h *hall) join(p *peers.Config) {
	p.Run = rand.Text()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs = append(h.runs, p.Run)
	run := p.Run
	p.News = func() string { return "" }
	p.Hold = func(host string, holds func(string) bool) { h.hold(host, run, holds(host)) }
	p.Holders = h.holders
	p.Unheard = func(time.Duration) []string { return nil }
}

func sharedStore(t testing.TB, now func() time.Time) *commonStore {
	t.Helper()
	store := programs.Got(kv.Open(t.Context(), "memory:", kv.Options{Now: now}))(t)
	t.Cleanup(func() { _ = store.Close() })
	return &commonStore{Store: store, hall: hall{held: map[string][]string{}}}
}

// always is of a secret that is never replaced.
func always(secret []byte) peers.Secrets {
	return func() ([][]byte, error) { return [][]byte{secret}, nil }
}

// node is one relay of several.
type node struct {
	*Relay
	addr, peer string
}

// among has a relay be one of several.
func among(t *testing.T, store *commonStore, name string) func(*Config) {
	t.Helper()
	l := programs.Got(Listen(t.Context(), "127.0.0.1:0"))(t)
	return func(c *Config) {
		c.Node = name
		c.Peers = &peers.Config{
			Store: store, Secrets: always(peerSecret), Listener: l, Address: l.Addr().String(), Domain: "localhost",
			Relay: controlapi.Relay{Address: name + ".example:443", ServerName: testAuthHost},
		}
		store.hall.join(c.Peers)
	}
}

func serveNode(t *testing.T, store *commonStore, name string, change func(*Config)) node {
	t.Helper()
	join := among(t, store, name)
	var n node
	n.Relay, n.addr = serveRelay(t, func(c *Config) {
		join(c)
		n.peer = c.Peers.Address
		if change != nil {
			change(c)
		}
	}, nil)
	return n
}

// sees waits until a node knows how many there are.
func (n node) sees(t *testing.T, count int) {
	t.Helper()
	programs.Eventually(t, fmt.Sprintf("%d nodes are known", count), func() bool {
		return len(n.RelaysFor("computer")) == count
	})
}

// visitedAt opens visits at a node until one reaches the agent, and returns both
// ends of it and the hello that was sent.
func (a *agent) visitedAt(addr string) (visitor, data *net.TCPConn, hello []byte) {
	a.t.Helper()
	hello = programs.ClientHello(a.t, &tls.Config{ServerName: "notes.maya.localhost"})
	ticket := a.ticket()
	data = a.open(ticket)
	reached := make(chan []byte, 1)
	go func() { head, _ := headOf(data); reached <- head }()
	var head []byte
	programs.Eventually(a.t, "a visitor reaches the agent", func() bool {
		conn, away := visit(a.t, addr, hello), make(chan struct{})
		go func() { defer close(away); _, _ = conn.Read(make([]byte, 16)) }()
		select {
		case head = <-reached:
			_ = conn.SetReadDeadline(time.Now()) // nobody has answered it
			<-away
		case <-away:
		}
		visitor = conn
		return head != nil
	})
	_ = visitor.SetReadDeadline(time.Now().Add(longest))
	if got := a.sourceIn(head, ticket); got.String() != visitor.LocalAddr().String() {
		a.t.Errorf("the agent is told of %v, and the visitor is %v", got, visitor.LocalAddr())
	}
	return visitor, data, hello
}

func timedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

func exchange(t *testing.T, from, to net.Conn, message string) {
	t.Helper()
	programs.Got(io.WriteString(from, message))(t)
	receives(t, to, message)
}

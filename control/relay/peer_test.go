package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

var peerSecret = bytes.Repeat([]byte("s"), 32)

// countingStore counts what is asked of it, and can be away.
type countingStore struct {
	kv.Store
	views atomic.Int64
	turns sync.Map // names of the turns of its calls
	away  atomic.Bool
	hall  hall
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
func (h *hall) join(p *Peers) {
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

// directoryOf is one of a node that hears nobody, but for what p says.
func directoryOf(p Peers, node string, now func() time.Time, log *slog.Logger) *directory {
	if p.News == nil {
		p.News = func() string { return node + ":7543" }
	}
	if p.Hold == nil {
		p.Hold = func(string, func(string) bool) {}
	}
	if p.Holders == nil {
		p.Holders = func(context.Context, string, int) (runs, without []string) { return nil, nil }
	}
	if p.Unheard == nil {
		p.Unheard = func(time.Duration) []string { return nil }
	}
	if p.Domain == "" {
		p.Domain = "localhost"
	}
	return newDirectory(p, node, func(string) bool { return false }, now, log)
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
	store, err := kv.Open(t.Context(), "memory:", kv.Options{Now: now})
	programs.Must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return &countingStore{Store: store, hall: hall{held: map[string][]string{}}}
}

// always is of a secret that is never replaced.
func always(secret []byte) Secrets {
	return func() ([][]byte, error) { return [][]byte{secret}, nil }
}

// node is one relay of several.
type node struct {
	*Relay
	addr, peer string
}

// among has a relay be one of several.
func among(t *testing.T, store *countingStore, name string) func(*Config) {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0")
	programs.Must(t, err)
	return func(c *Config) {
		c.Node = name
		c.Peers = &Peers{
			Store: store, Secrets: always(peerSecret), Listener: l, Address: l.Addr().String(), Domain: "localhost",
			Relay: controlapi.Relay{Address: name + ".example:443", ServerName: testAuthHost},
		}
		store.hall.join(c.Peers)
	}
}

func serveNode(t *testing.T, store *countingStore, name string, change func(*Config)) node {
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
		n.directory.mu.Lock()
		defer n.directory.mu.Unlock()
		return len(n.directory.nodes) == count
	})
}

// visitedAt opens visits at a node until one reaches the agent, and returns both
// ends of it and the hello that was sent.
func (a *agent) visitedAt(addr string) (visitor, data *net.TCPConn, hello []byte) {
	a.t.Helper()
	hello = recordHello(a.t, &tls.Config{ServerName: "notes.maya.localhost"})
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
	_, err := io.WriteString(from, message)
	programs.Must(t, err)
	receives(t, to, message)
}

// A visitor who lands on another node than the agent is joined to it all the
// same, with its own address, both ways and with each side's end, although a clock is
// wrong; and when the tunnel moves, visitors follow.
func TestVisitorsAtAnotherNode(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	one := serveNode(t, store, "one", nil)
	two := serveNode(t, store, "two", func(c *Config) {
		c.Now = func() time.Time { return time.Now().Add(5 * time.Minute) }
	})
	one.sees(t, 2)
	two.sees(t, 2)
	a := connectAgent(t, two.addr, "maya")
	large := string(bytes.Repeat([]byte("0123456789abcdef"), 64<<10)) // a megabyte
	visitor, data, hello := a.visitedAt(one.addr)
	receives(t, data, string(hello))
	exchange(t, data, visitor, "an answer")
	exchange(t, visitor, data, "a request")
	go func() { _, _ = io.WriteString(data, large); _ = data.CloseWrite() }()
	whole, err := io.ReadAll(visitor)
	if err != nil || string(whole) != large {
		t.Fatalf("%d bytes of %d came, %v", len(whole), len(large), err)
	}
	exchange(t, visitor, data, "the other direction goes on")
	programs.Must(t, visitor.CloseWrite())
	if rest, err := io.ReadAll(data); err != nil || len(rest) > 0 {
		t.Fatalf("%q, %v", rest, err)
	}
	programs.Eventually(t, "both nodes have forgotten the visit", func() bool { return one.Stats().Visitors+two.Stats().Visitors == 0 })
	if s := one.Stats(); s.PassedOn != 1 || s.BytesDown < uint64(len(large)) || two.Stats().TakenOver != 1 || two.Stats().PeerFailures > 0 {
		t.Errorf("counted %+v and %+v", s, two.Stats())
	}

	_ = a.control.Close()
	programs.Eventually(t, "the tunnel has ended", func() bool { return two.Stats().Sessions == 0 })
	visitor, data, hello = connectAgent(t, one.addr, "maya").visitedAt(two.addr)
	receives(t, data, string(hello))
	exchange(t, data, visitor, "from the new place")

	// What the agent resets does not look whole to the visitor.
	_ = data.SetLinger(0)
	_ = data.Close()
	if _, err := io.ReadAll(visitor); err == nil {
		t.Error("a visit that was cut off ended as if it were whole")
	}
}

// tap writes down what is said at an address to one behind it, and back.
type tap struct {
	net.Listener
	mu   sync.Mutex
	said []byte // guarded by mu
}

func (p *tap) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, b...)
	return len(b), nil
}

func (p *tap) heard(what []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Contains(p.said, what)
}

func (p *tap) run(behind string) {
	for {
		conn, err := p.Accept()
		if err != nil {
			return
		}
		on, err := net.Dial("tcp", behind)
		if err != nil {
			_ = conn.Close()
			return
		}
		for _, way := range [][2]net.Conn{{conn, on}, {on, conn}} {
			go func() {
				_, _ = io.Copy(way[1], io.TeeReader(way[0], p))
				_ = way[1].(*net.TCPConn).CloseWrite()
			}()
		}
	}
}

// Who listens between two nodes hears neither whom a visitor visits nor any of a visit that
// could answer a certificate authority's challenge: the nodes' TLS has both in it. What
// follows an ordinary ClientHello is the visitor's own TLS, which the kernel moves.
func TestWhatIsSaidBetweenNodes(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	between := &tap{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	store := sharedStore(t, nil)
	one := serveNode(t, store, "one", nil)
	two := serveNode(t, store, "two", func(c *Config) {
		go between.run(c.Peers.Address)
		c.Peers.Address, c.VisitorWait = l.Addr().String(), time.Second
	})
	one.sees(t, 2)
	visitor, data, hello := connectAgent(t, two.addr, "maya").visitedAt(one.addr)
	receives(t, data, string(hello))
	exchange(t, data, visitor, "an answer")
	exchange(t, visitor, data, "a request")
	if !between.heard([]byte("an answer")) || !between.heard([]byte("a request")) {
		t.Error("an ordinary visit is inside the nodes' TLS")
	}
	challenge := recordHello(t, &tls.Config{ServerName: "maya.localhost", NextProtos: []string{acmeALPN}})
	answered(t, "a challenge, for which the agent opens nothing", visit(t, one.addr, challenge), alertRecord(alertInternalError))
	if two.Stats().TakenOver < 2 || between.heard(alertRecord(alertInternalError)) {
		t.Error("what a challenge is answered can be heard")
	}
	if between.heard([]byte("maya")) {
		t.Error("whom a visitor visits can be heard")
	}
}

// gathering keeps what is written until it is let out at once.
type gathering struct {
	net.Conn
	gathers bool
	kept    []byte
}

func (g *gathering) Write(b []byte) (int, error) {
	if g.gathers {
		g.kept = append(g.kept, b...)
		return len(b), nil
	}
	return g.Conn.Write(b)
}

// What arrives together with the answer that ends the nodes' TLS is not lost in it.
func TestWhatComesWithTheAnswerIsNotLost(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	keys, err := newPeerTLS(always(peerSecret), "two", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		_, _, takes := keys.known()
		out := &gathering{Conn: raw}
		secure := tls.Server(out, takes)
		_ = secure.Handshake()
		out.gathers = true
		_, _ = secure.Write([]byte{peerBare})
		_, _ = raw.Write(append(out.kept, "bare"...))
	}()
	raw := dial(t, l.Addr().String())
	s := &peerStream{stream: tls.Client(&byRecord{Conn: raw}, keys.client("two")), raw: raw}
	if err := s.ask(t.Context(), []byte("?"), longest); err != nil {
		t.Fatal(err)
	}
	_ = raw.SetReadDeadline(time.Now().Add(longest))
	receives(t, s, "bare")
}

// A kick at the node of the tunnel ends visits that came in by the other.
func TestKickReachesVisitorsAtAnotherNode(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	one, two := serveNode(t, store, "one", nil), serveNode(t, store, "two", nil)
	one.sees(t, 2)
	visitor, data, _ := connectAgent(t, two.addr, "maya").visitedAt(one.addr)
	exchange(t, data, visitor, "x")
	two.Kick("maya")
	if n, err := visitor.Read(make([]byte, 1)); err == nil || timedOut(err) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A node that died is tried once in a while, its visitors are turned away at
// once, and when its lease is over it is forgotten.
func TestDeadNode(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	store := sharedStore(t, now.Now)
	err := store.Update(t.Context(), func(tx kv.Tx) error {
		gone := nodeRow{Node: "gone", Run: "r", Peer: programs.FreeAddress(t), Relay: controlapi.Relay{Address: "gone.example:443"}, Protocol: nodeProtocol}
		return putRow(tx, keyNodes+"gone", gone, lease)
	})
	programs.Must(t, err)
	store.hall.hold("maya.localhost", "r", true)
	changed := make(chan struct{}, 64)
	one := serveNode(t, store, "one", func(c *Config) { c.Now = now.Now; c.Peers.Changed = func() { changed <- struct{}{} } })
	one.sees(t, 2)
	answer := func(name string) []byte {
		got, err := io.ReadAll(visit(t, one.addr, recordHello(t, &tls.Config{ServerName: name})))
		programs.Must(t, err)
		return got
	}
	if got := answer("maya.localhost"); !bytes.Equal(got, alertRecord(alertInternalError)) {
		t.Errorf("at a node that is dead: %x", got)
	}
	failures := one.Stats().PeerFailures
	if got := answer("maya.localhost"); !bytes.Equal(got, alertRecord(alertInternalError)) || one.Stats().PeerFailures != failures || failures != 1 {
		t.Errorf("right after that: %x, %d failures", got, one.Stats().PeerFailures)
	}
	if got := one.RelaysFor("maya"); len(got) != 2 {
		t.Errorf("while the lease runs, agents are told of %v", got)
	}
	for len(changed) > 0 {
		<-changed
	}
	// The clock goes on in small steps: a leap would look like a store that was
	// away, which the next test is about.
	for range 2 * lease / time.Second {
		now.advance(time.Second)
		programs.Must(t, one.directory.look(t.Context()))
	}
	programs.Must(t, one.directory.renew(t.Context()), one.directory.look(t.Context()))
	if got := one.RelaysFor("maya"); len(got) != 1 || got[0].Address != "one.example:443" {
		t.Errorf("when its lease is over, agents are told of %v", got)
	}
	if len(changed) == 0 {
		t.Error("nobody was told that the node is gone")
	}
}

// A visitor whose tunnel has gone to a third node meanwhile is not sent after it:
// two nodes that each believe the other has it would never end.
func TestNobodyIsPassedOnTwice(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	one, two := serveNode(t, store, "one", nil), serveNode(t, store, "two", nil)
	one.sees(t, 2)
	connectAgent(t, two.addr, "maya")
	programs.Eventually(t, "the tunnel is found", func() bool {
		return len(one.directory.find(t.Context(), "maya.localhost").nodes) == 1
	})
	raw := dial(t, one.peer)
	visitor := &peerStream{stream: tls.Server(raw, &tls.Config{}), raw: raw, remote: raw.RemoteAddr(), local: raw.LocalAddr()}
	p := &preface{buf: make([]byte, headroom+maxPreface), n: 1, hello: clientHello{serverName: "maya.localhost"}}
	if err := one.forward(t.Context(), visitor, p, func() {}); !errors.Is(err, errUnknownHost) || one.Stats().PassedOn != 0 {
		t.Errorf("%v, %d passed on", err, one.Stats().PassedOn)
	}
}

// Strangers who reach the peers' port get nowhere, whatever certificate they
// show.
func TestPeersPort(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	two := serveNode(t, store, "two", nil)
	own, err := newPeerTLS(always(peerSecret), "one", time.Now)
	programs.Must(t, err)
	stranger, err := newPeerTLS(always(bytes.Repeat([]byte("t"), 32)), "one", time.Now)
	programs.Must(t, err)
	late, err := newPeerTLS(always(peerSecret), "one", func() time.Time { return time.Now().Add(-peerCertLife - time.Hour) })
	programs.Must(t, err)
	if _, err := newPeerTLS(always(peerSecret[:31]), "one", time.Now); err == nil {
		t.Error("a short secret is taken")
	}
	certificate := func(p *peerTLS) []tls.Certificate {
		c, err := p.certificate()
		programs.Must(t, err)
		return []tls.Certificate{*c}
	}
	source := netip.MustParseAddrPort("[2001:db8::7]:4711")
	request := appendPeerRequest(nil, source, source, recordHello(t, &tls.Config{ServerName: "maya.localhost"}))
	ask := func(config *tls.Config, request []byte) ([]byte, error) {
		conn := tls.Client(dial(t, two.peer), config)
		if err := conn.Handshake(); err != nil {
			return nil, err
		}
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		return io.ReadAll(conn)
	}
	base := func(p *peerTLS, certs []tls.Certificate) *tls.Config {
		c := p.client("two")
		c.Certificates, c.GetClientCertificate, c.ClientSessionCache = certs, nil, nil
		return c
	}
	for name, config := range map[string]*tls.Config{
		"no certificate":              base(own, nil),
		"a stranger's":                base(own, certificate(stranger)),
		"one that is over":            base(own, certificate(late)),
		"the right one, another name": func() *tls.Config { c := own.client("three"); return c }(),
		"a stranger's trust":          stranger.client("two"),
		"an older TLS": func() *tls.Config {
			c := own.client("two")
			c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
			return c
		}(),
		"no protocol": func() *tls.Config { c := own.client("two"); c.NextProtos = nil; return c }(),
	} {
		// Where the handshake itself was good, the end of the connection may come as
		// one without an error; who is served gets a byte.
		if got, err := ask(config, request); len(got) > 0 || err == nil && name != "no protocol" {
			t.Errorf("%s: answer %x, %v", name, got, err)
		}
	}
	if got, err := ask(own.client("two"), request); err != nil || !bytes.Equal(got, []byte{peerUnknown}) {
		t.Errorf("a tunnel that is not here: %x, %v", got, err)
	}
	for name, request := range map[string][]byte{
		"nothing to say":   appendPeerRequest(nil, source, source, nil),
		"no hello":         appendPeerRequest(nil, source, source, []byte("GET / HTTP/1.1\r\n\r\n")),
		"half a hello":     appendPeerRequest(nil, source, source, request[peerHead:peerHead+40]),
		"a data preamble":  appendPeerRequest(nil, source, source, tunnelwire.AppendPreamble(nil, tunnelwire.NewTicket())),
		"more than 16 KiB": append(request[:peerHead-2:peerHead-2], 0xff, 0xff),
	} {
		if got, _ := ask(own.client("two"), request); len(got) > 0 {
			t.Errorf("%s: answer %x", name, got)
		}
	}
	programs.Eventually(t, "nobody is entering any more", func() bool { return len(two.peersEntering) == 0 })
}

func FuzzPeerRequest(f *testing.F) {
	source := netip.MustParseAddrPort("192.0.2.1:443")
	f.Add(appendPeerRequest(nil, source, source, recordHello(f, &tls.Config{ServerName: "maya.localhost"})))
	f.Add(appendPeerRequest(nil, netip.AddrPort{}, netip.MustParseAddrPort("[2001:db8::1]:1"), []byte{recordHandshake}))
	f.Add(make([]byte, peerHead))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) < peerHead {
			return
		}
		source, destination, n, err := parsePeerHead([peerHead]byte(raw))
		if err != nil {
			return
		}
		if n < 1 || n > maxPreface {
			t.Fatalf("%d first bytes", n)
		}
		again := appendPeerRequest(nil, source, destination, make([]byte, n))
		// The two ways to write an IPv4 address are the same address.
		s, d, m, err := parsePeerHead([peerHead]byte(again))
		if err != nil || s != source || d != destination || m != n {
			t.Fatalf("%v %v %d became %v %v %d, %v", source, destination, n, s, d, m, err)
		}
	})
}

func putRow(tx kv.Tx, key string, row any, ttl time.Duration) error {
	value, err := json.Marshal(row)
	if err != nil {
		return err
	}
	return tx.Put(key, value, ttl)
}

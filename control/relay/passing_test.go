package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/kv"
	"porchlight/control/relay/clienthello"
	"porchlight/control/relay/peers"
	"porchlight/test/programs"
)

// A visitor who lands on another node than the agent is joined to it all the
// same, with its own address, both ways and with each side's end, although a clock is
// wrong; and when the tunnel moves, visitors follow.
func TestVisitorsAtAnotherNode(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	type visit struct {
		computer string
		up, down int64
	}
	told := make(chan visit, 2) // by the node that has the tunnel alone
	one := serveNode(t, store, "one", func(c *Config) {
		c.Carried = func(string, int64, int64) { told <- visit{computer: "counted by who passed it on"} }
	})
	two := serveNode(t, store, "two", func(c *Config) {
		c.Now = func() time.Time { return time.Now().Add(5 * time.Minute) }
		c.Carried = func(computer string, up, down int64) { told <- visit{computer, up, down} }
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
	up, down := len(hello)+len("a request"), len("an answer")+len(large)
	if got := <-told; got.computer != "maya" || got.up < int64(up) || got.down < int64(down) {
		t.Errorf("carried is %+v, want %d and %d", got, up, down)
	}
	if n := one.visitors.inside() + two.visitors.inside(); n != 0 {
		t.Errorf("%d are still counted by where they came from", n)
	}
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
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
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
	challenge := programs.ClientHello(t, &tls.Config{ServerName: "maya.localhost", NextProtos: []string{"acme-tls/1"}})
	answered(t, "a challenge, for which the agent opens nothing", visit(t, one.addr, challenge), internalError)
	if two.Stats().TakenOver < 2 || between.heard(internalError) {
		t.Error("what a challenge is answered can be heard")
	}
	if between.heard([]byte("maya")) {
		t.Error("whom a visitor visits can be heard")
	}
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

// A node that died is tried once in a while, and its visitors are turned away at once.
func TestDeadNode(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	putNode(t, store, map[string]any{
		"node": "gone", "run": "r", "peer": programs.FreeAddress(t), "relay": controlapi.Relay{Address: "gone.example:443"}, "protocol": 1,
	})
	store.hall.hold("maya.localhost", "r", true)
	one := serveNode(t, store, "one", nil)
	one.sees(t, 2)
	answer := func(name string) []byte {
		return programs.Got(io.ReadAll(visit(t, one.addr, programs.ClientHello(t, &tls.Config{ServerName: name}))))(t)
	}
	if got := answer("maya.localhost"); !bytes.Equal(got, internalError) {
		t.Errorf("at a node that is dead: %x", got)
	}
	failures := one.Stats().PeerFailures
	if got := answer("maya.localhost"); !bytes.Equal(got, internalError) || one.Stats().PeerFailures != failures || failures != 1 {
		t.Errorf("right after that: %x, %d failures", got, one.Stats().PeerFailures)
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
		found, err := one.peers.Find(t.Context(), "maya.localhost")
		if err != nil {
			return false
		}
		found.Done()
		return true
	})
	p := &preface{buf: make([]byte, headroom+clienthello.MaxSize), n: 1, hello: clienthello.Hello{ServerName: "maya.localhost"}}
	if err := one.forward(t.Context(), sent{dial(t, one.peer)}, p, func() {}); !errors.Is(err, errUnknownHost) || one.Stats().PassedOn != 0 {
		t.Errorf("%v, %d passed on", err, one.Stats().PassedOn)
	}
}

// Weakness: each visitor who was passed on waited for a second node to say that it has
// the tunnel too, also where only one has. Checked: one answer is asked for, and others
// only when that node did not take the visitor.
func TestTheFirstHolderIsEnough(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	var mu sync.Mutex
	var said []string // guarded by mu: runs
	var asked []int   // guarded by mu: for how many answers at most
	holders := func(_ context.Context, _ string, most int) ([]string, []string) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, most)
		return said[:min(len(said), most)], nil
	}
	open := func(name string) node {
		return serveNode(t, store, name, func(c *Config) { c.Peers.Run, c.Peers.Holders = "run-"+name, holders })
	}
	one, two, three := open("one"), open("two"), open("three")
	for _, n := range []node{one, two, three} {
		n.sees(t, 3)
	}
	a := connectAgent(t, three.addr, "maya")
	for _, c := range []struct {
		said  string
		asked []int
	}{
		{"run-three", []int{1}},
		{"run-three run-two", []int{1}},
		{"run-two run-three", []int{1, 2}}, // it has just gone from two
	} {
		mu.Lock()
		said, asked = strings.Fields(c.said), nil
		mu.Unlock()
		visitor, data, _ := a.visitedAt(one.addr)
		exchange(t, data, visitor, c.said)
		mu.Lock()
		if !slices.Equal(asked, c.asked) {
			t.Errorf("%s say so: asked for %v answers", c.said, asked)
		}
		mu.Unlock()
	}
}

// turnedAway is what a node says to a visitor it turns away.
func turnedAway(t *testing.T, addr, name string) []byte {
	t.Helper()
	return programs.Got(io.ReadAll(visit(t, addr, programs.ClientHello(t, &tls.Config{ServerName: name}))))(t)
}

// While the store is away visitors reach their computers by every node, also one that
// was never asked for them before and after the tunnel has moved; nobody is told that
// a name does not exist.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	one, two, three := serveNode(t, store, "one", nil), serveNode(t, store, "two", nil), serveNode(t, store, "three", nil)
	for _, n := range []node{one, two, three} {
		n.sees(t, 3)
	}
	if got := turnedAway(t, one.addr, "nobody.localhost"); !bytes.Equal(got, unrecognizedName) {
		t.Errorf("a name that is nobody's: %x", got)
	}
	a := connectAgent(t, two.addr, "maya")
	store.away.Store(true)
	store.hall.mu.Lock()
	store.hall.mute = true
	store.hall.mu.Unlock()
	visitor, data, _ := a.visitedAt(one.addr)
	exchange(t, data, visitor, "by a node that was not asked before")
	if got := turnedAway(t, one.addr, "nobody2.localhost"); !bytes.Equal(got, internalError) {
		t.Errorf("while nobody knows, a name that may be somebody's: %x", got)
	}
	if got := turnedAway(t, one.addr, "nobody.example"); !bytes.Equal(got, unrecognizedName) {
		t.Errorf("a name outside the domain: %x", got)
	}
	_ = a.control.Close()
	programs.Eventually(t, "the tunnel has ended", func() bool { return two.Stats().Sessions == 0 })
	a = connectAgent(t, three.addr, "maya")
	visitor, data, _ = a.visitedAt(one.addr)
	exchange(t, data, visitor, "at the node it moved to")

}

// ring is what nodes read from their store: secrets that change while they run.
type ring struct{ atomic.Pointer[[][]byte] }

func (r *ring) set(secrets ...[]byte) { r.Store(&secrets) }

func (r *ring) secrets() ([][]byte, error) { return *r.Load(), nil }

var oldSecret, newSecret = bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 32)

// Three nodes pass visitors on at every step of a planned rotation, also while some have read
// it and others not, and after a leak.
func TestPeersGoOverToAnotherSecret(t *testing.T) {
	t.Parallel()
	for what, steps := range map[string][][][]byte{
		"planned":      {{oldSecret, newSecret}, {newSecret, oldSecret}, {newSecret}},
		"after a leak": {{newSecret}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store := sharedStore(t, nil)
			var nodes [3]node
			var rings [3]ring
			for i, name := range []string{"one", "two", "three"} {
				rings[i].set(oldSecret)
				nodes[i] = serveNode(t, store, name, func(c *Config) { c.Peers.Secrets = rings[i].secrets })
			}
			for _, n := range nodes {
				n.sees(t, 3)
			}
			a := connectAgent(t, nodes[2].addr, "maya")
			passOn := func() {
				t.Helper()
				for _, n := range nodes[:2] {
					visitor, data, _ := a.visitedAt(n.addr)
					exchange(t, data, visitor, "an answer")
				}
			}
			passOn()
			for _, secrets := range steps {
				for i := range rings {
					rings[i].set(secrets...)
					if len(steps) > 1 {
						passOn()
					}
				}
				passOn()
			}
		})
	}
}

// What a node passes on is a visitor's: a whole ClientHello.
func TestNodesPassOnVisitorsAlone(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	two := serveNode(t, store, "two", nil)
	connectAgent(t, two.addr, "maya")
	var cfg Config
	among(t, store, "one")(&cfg)
	own := *cfg.Peers
	own.Node, own.Now, own.Log = "one", time.Now, slog.New(slog.DiscardHandler)
	one, err := peers.New(own)
	programs.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); one.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	hello := programs.ClientHello(t, &tls.Config{ServerName: "maya.localhost"})
	for name, first := range map[string][]byte{
		"no hello": []byte("GET / HTTP/1.1\r\n\r\n"), "half a hello": hello[:40],
		"a data preamble": tunnelwire.AppendPreamble(nil, tunnelwire.NewTicket()), "a hello": hello,
	} {
		var found *peers.Found
		programs.Eventually(t, "the tunnel is found", func() bool {
			found, err = one.Find(ctx, "maya.localhost")
			return err == nil
		})
		conn, err := found.Call(ctx, peers.Visit{First: first})
		found.Done()
		if taken := err == nil; taken != (name == "a hello") {
			t.Errorf("%s: %v", name, err)
		}
		if conn != nil {
			conn.Reset()
		}
	}
	programs.Eventually(t, "nobody is entering any more", func() bool { return len(two.peersEntering) == 0 })
}

// putNode writes the row of a node, as long as its lease runs.
func putNode(t *testing.T, store kv.Store, row map[string]any) {
	t.Helper()
	value, err := json.Marshal(row)
	if err == nil {
		err = store.PutAll(t.Context(), time.Hour, kv.Item{Key: fmt.Sprint("relay-node/", row["node"]), Value: value})
	}
	programs.Must(t, err)
}

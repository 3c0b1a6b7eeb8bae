package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

// fence is a port between nodes: while it is shut, whoever comes is sent away.
type fence struct {
	net.Listener
	shut *atomic.Bool
}

func (f fence) Accept() (net.Conn, error) {
	for {
		conn, err := f.Listener.Accept()
		if err != nil || !f.shut.Load() {
			return conn, err
		}
		_ = conn.Close()
	}
}

// realAgent connects a computer's tunnel to nodes; what visitors send comes back.
func realAgent(t *testing.T, name string, nodes ...node) (stop func()) {
	t.Helper()
	var relays []controlapi.Relay
	for _, n := range nodes {
		relays = append(relays, controlapi.Relay{Address: n.addr, ServerName: testAuthHost})
	}
	leaf := programs.Got(x509.ParseCertificate(testCertificate().Certificate[0]))(t)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	agent := programs.Got(tunnel.New(tunnel.Config{
		Open: func() bool { return false }, Opened: new(broadcast.Signal).Subscribe,
		Relays:     func() []controlapi.Relay { return relays },
		Credential: func() string { return "credential-of-" + name },
		RootCAs:    roots,
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = agent.Run(ctx) })
	wg.Go(func() {
		for {
			conn, err := agent.Listener().Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return stop
}

// comesBack visits a computer at a node, and wants to see its own hello again. The
// connection it took is replaced at the agent's side: so the agent has read whatever it
// was told before.
func (n node) comesBack(t *testing.T, hello []byte) {
	t.Helper()
	conn := visit(t, n.addr, hello)
	receives(t, conn, string(hello))
	_ = conn.Close()
	programs.Eventually(t, "the connection taken is replaced", func() bool { return n.Stats().Parked >= n.cfg.Limits.PoolMin })
}

// Where the network between all nodes and the store fails, every node is cut off, and
// each keeps the computers it has: no other could take them. Only one that has none
// would rather have no visitors.
func TestCutOff(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	store := sharedStore(t, nil)
	var shut atomic.Bool
	join := func(name string) node {
		return serveNode(t, store, name, func(c *Config) {
			c.Now = now.Now
			c.Peers.Listener = fence{c.Peers.Listener, &shut}
			authenticate := c.Authenticate
			c.Authenticate = func(ctx context.Context, credential string) (controlapi.Computer, error) {
				if store.away.Load() {
					return controlapi.Computer{}, kv.ErrUnavailable
				}
				return authenticate(ctx, credential)
			}
		})
	}
	one, two, three := join("one"), join("two"), join("three")
	for _, n := range []node{one, two, three} {
		n.sees(t, 3)
	}
	stop := realAgent(t, "maya", one, two)
	programs.Eventually(t, "the agent is at two nodes", func() bool { return one.Stats().Sessions+two.Stats().Sessions == 2 })
	hello := programs.ClientHello(t, &tls.Config{ServerName: "notes.maya.localhost"})
	three.comesBackFrom(t, hello)

	store.away.Store(true)
	shut.Store(true)
	programs.Eventually(t, "all notice that nobody is there", func() bool {
		now.advance(time.Second)
		return one.CutOff() && two.CutOff() && three.CutOff()
	})
	for range 2 {
		one.comesBack(t, hello)
		two.comesBack(t, hello)
	}
	if one.Stats().Sessions != 1 || two.Stats().Sessions != 1 || one.ServesNobody() || two.ServesNobody() {
		t.Errorf("sessions %d and %d, serves nobody %v and %v",
			one.Stats().Sessions, two.Stats().Sessions, one.ServesNobody(), two.ServesNobody())
	}
	if !three.ServesNobody() {
		t.Error("a node that is cut off and has no computer would still have visitors")
	}
	if got := turnedAway(t, three.addr, "notes.maya.localhost"); !bytes.Equal(got, internalError) {
		t.Errorf("a visitor there is told %x", got)
	}

	stop()
	programs.Eventually(t, "the last computer has left", one.ServesNobody)
	shut.Store(false)
	programs.Eventually(t, "the others answer, and nobody is cut off", func() bool {
		return !one.CutOff() && !two.CutOff() && !three.CutOff()
	})
}

// comesBackFrom visits a computer that is elsewhere.
func (n node) comesBackFrom(t *testing.T, hello []byte) {
	t.Helper()
	programs.Eventually(t, "the node finds the computer", func() bool {
		conn := visit(t, n.addr, hello)
		defer conn.Close()
		got := make([]byte, len(hello))
		_, err := io.ReadFull(conn, got)
		return err == nil && bytes.Equal(got, hello)
	})
}

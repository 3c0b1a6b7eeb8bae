package local

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/control"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/control/mail"
	"porchlight/control/relay"
	"porchlight/control/wiring"
	"porchlight/internal/localca"
	"porchlight/test/programs"
	"porchlight/test/rig"
)

// fleet is a control plane of two nodes on one database. Visitors and the agent are at
// the first, the agent over a network of the test's own; the second is where somebody
// else's dashboard is served.
type fleet struct {
	*scene
	elsewhere *control.Service
	network   *network // between the agent and its node
}

// startFleet has two nodes on one PostgreSQL, and Bob as in newScene.
func startFleet(t *testing.T) *fleet {
	t.Helper()
	server := programs.Got(pgtest.Start(pgtest.Options{}))(t)
	t.Cleanup(func() { server.Close() })
	database := server.Database(t)
	log := slog.New(slog.DiscardHandler)
	dir := t.TempDir()
	ca, err := localca.Open(filepath.Join(dir, "ca"), localca.Options{Names: []string{domain}, Organisation: "A test", Log: log})
	programs.Must(t, err)
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	f := &fleet{network: startNetwork(t, ln.Addr().String())}
	port := portOf(t, f.network.addr())
	node := func() (*wiring.ControlPlane, *mail.Outbox) {
		store := programs.Got(kv.Open(t.Context(), database, kv.Options{}))(t)
		t.Cleanup(func() { store.Close() })
		outbox := mail.NewOutbox(store, nil)
		built := programs.Got(wiring.Build(wiring.Config{
			Control: control.Config{
				Store: store, Naming: control.Naming{Domain: domain, AuthHost: authHost, PublicPort: port}, Mail: outbox, SharedStore: true,
			},
			Relay:  relay.Config{TLS: authTLS(ca, log), Grace: time.Millisecond},
			Tunnel: net.JoinHostPort(authHost, strconv.Itoa(port)),
			Log:    log,
		}))(t)
		return built, outbox
	}
	p := &controlPlane{ca: ca}
	p.ControlPlane, p.outbox = node()
	second, _ := node()
	f.elsewhere = second.Service
	e := programs.Got(p.Service.Computers.Ensure(t.Context(), "owner@maya."+domain, "maya"))(t)
	p.credential = e.Credential
	cfg := configOf(filepath.Join(dir, "agent")).Agent
	cfg.ComputerID, cfg.ControlPlane = e.Computer.ID, p.forAgent()
	cfg.ControlPlane.Local = false // it is over a network, which can lose it
	cfg.IssueCertificate, cfg.OwnPorts, cfg.Outbox = ca.Issue, []int{port}, p.outboxMails
	a := programs.Got(agent.New(cfg))(t)
	r := &running{Local: &Local{agent: a, controlPlane: p, listeners: []net.Listener{ln}}, Server: cfg.Server}
	r.serve(t, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return p.Service.Run(ctx) })
		g.Go(func() error { return f.elsewhere.Run(ctx) })
		g.Go(func() error { return p.Relay.Serve(ctx, ln) })
		g.Go(func() error { return a.Run(ctx) })
		return g.Wait()
	})
	t.Cleanup(func() {
		if err := r.end(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the fleet ended: %v", err)
		}
	})
	h := &house{running: r, controlPlane: p, open: agentapi.New(r.Addr()), owner: agentapi.NewOwner(r.OwnerSocket(), secret)}
	h.mails = rig.Outbox(h.owner.Outbox)
	f.scene = &scene{house: h, app: startHeldApp(t), held: map[string]*opened{}}
	f.populate(t)
	return f
}

// network carries connections to one address and can lose what is on them
// without closing any, as a cable that is pulled does.
type network struct {
	ln net.Listener
	to string

	mu   sync.Mutex
	lost chan struct{}         // closed: what was connected before carries nothing more
	open map[net.Conn]struct{} // guarded by mu
}

func startNetwork(t *testing.T, to string) *network {
	t.Helper()
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	n := &network{ln: ln, to: to, lost: make(chan struct{}), open: map[net.Conn]struct{}{}}
	programs.ServeConns(t, ln, n.carry)
	t.Cleanup(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for conn := range n.open {
			conn.Close()
		}
	})
	return n
}

func (n *network) addr() string { return n.ln.Addr().String() }

// lose has everything that is connected now carry nothing more.
func (n *network) lose() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.lost)
	n.lost = make(chan struct{})
}

func (n *network) carry(near net.Conn) {
	far, err := net.Dial("tcp", n.to)
	if err != nil {
		return
	}
	n.mu.Lock()
	lost := n.lost
	n.open[near], n.open[far] = struct{}{}, struct{}{}
	n.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { pass(far, near, lost) })
	both.Go(func() { pass(near, far, lost) })
	both.Wait()
	n.mu.Lock()
	delete(n.open, near)
	delete(n.open, far)
	n.mu.Unlock()
	far.Close()
}

// pass copies until either side ends, which ends the other, or the network is
// lost: then it swallows what comes, and tells nobody of an end.
func pass(to, from net.Conn, lost <-chan struct{}) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-lost:
			io.Copy(io.Discard, from)
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

// Package news carries hints between the nodes of one control plane: that a
// computer changed, and so is to be read in the store, and which node has a
// computer's tunnel. What comes in is what this node changed and holds, and which
// other nodes live; what goes out are the computers that others changed, whether
// something may have been missed, and who says to hold a tunnel.
//
// It is an embedded NATS server, of which each node has one, in a cluster over
// mutual TLS, and one client of it in this process. A message grants nothing and
// decides nothing: whoever hears of a change reads the store, and who may have
// missed one reads it too. Nothing here is kept.
package news

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// beatEvery is how often a node says how much it has told, and silentAfter
	// how long after the last word of another it is taken for silent.
	beatEvery   = time.Second
	silentAfter = 2*beatEvery + beatEvery/2
	// closeWait bounds sending the last messages.
	closeWait = 5 * time.Second
)

// Config of a News. All fields but Lose are required.
type Config struct {
	// Node is this node's name, and Run is random, of one run of the program.
	Node, Run string
	// Listen is the host:port for the other nodes; a port of 0 is a free one.
	Listen string
	// TLS is for both sides of every connection between nodes. It must require
	// and verify the other side's certificate. It is asked every second: another one is
	// for connections from then on, and those of before end where generation has risen.
	TLS func() (mutual *tls.Config, generation int)
	// Heard is called with computers that another node changed. It must not
	// block.
	Heard func(computers []string)
	// Lose, for tests, says whether the message that just arrived gets lost.
	Lose func() bool
	Log  *slog.Logger
}

// Node is another node that lives.
type Node struct {
	Name, Run string
	Address   string // where it listens for news; empty for one that does not
}

// News is one node's part. It is safe for concurrent use.
type News struct {
	cfg    Config
	log    *slog.Logger
	server atomic.Pointer[server.Server] // nil before Listen
	client *nats.Conn                    // nil before Listen
	secret string                        // of the client, known to this process alone
	wake   chan struct{}                 // has room for one: there is something to tell

	routes     sync.Mutex                  // held while the server is told of other addresses
	known      []string                    // those it was told, sorted; guarded by routes
	wanted     []string                    // those it should be told; guarded by routes
	tls        *tls.Config                 // what it was told; guarded by routes
	generation int                         // of the connections that there are; guarded by routes
	closed     bool                        // guarded by routes
	reload     func(*server.Options) error // tells it; nil before Listen

	questions chan *nats.Msg // of other nodes, for tunnels

	holding sync.Mutex                // guards what follows
	held    map[string]held           // tunnels of this node, by host
	open    map[string]chan *nats.Msg // questions of this node, by where answers go

	mu      sync.Mutex           // guards what follows
	number  uint64               // of the last message of this node
	pending map[string]bool      // computers to tell of
	recent  map[string]time.Time // computers told of a moment ago, and when
	others  map[string]*other    // by name
	doubt   bool                 // something may have been missed
}

// New checks cfg and starts nothing.
func New(cfg Config) (*News, error) {
	host, _, err := net.SplitHostPort(cfg.Listen)
	switch {
	case err != nil || host == "":
		return nil, fmt.Errorf("news: %q is not an address to listen on", cfg.Listen)
	case !validName(cfg.Node) || !validName(cfg.Run):
		return nil, errors.New("news: the node or its run has no usable name")
	case cfg.TLS == nil || !verifiesBoth(cfg.TLS):
		return nil, errors.New("news: the TLS configuration does not verify both sides")
	case cfg.Heard == nil || cfg.Log == nil:
		return nil, errors.New("news: Heard and Log are required")
	}
	return &News{
		cfg: cfg, log: cfg.Log, secret: rand.Text(), wake: make(chan struct{}, 1),
		questions: make(chan *nats.Msg, questionsMost), held: map[string]held{}, open: map[string]chan *nats.Msg{},
		pending: map[string]bool{}, recent: map[string]time.Time{}, others: map[string]*other{}, doubt: true,
	}, nil
}

func verifiesBoth(of func() (*tls.Config, int)) bool {
	c, _ := of()
	return c != nil && c.ClientAuth == tls.RequireAndVerifyClientCert && !c.InsecureSkipVerify
}

// Listen opens the port for other nodes and begins to hear them. Close must be
// called afterwards, also when it failed.
func (n *News) Listen() (err error) {
	n.routes.Lock()
	n.tls, n.generation = n.cfg.TLS()
	if err = n.startServer(); err == nil {
		host, _, _ := net.SplitHostPort(n.cfg.Listen) // New has looked at it
		n.cfg.Listen = net.JoinHostPort(host, strconv.Itoa(n.server.Load().ClusterAddr().Port))
	}
	n.routes.Unlock()
	if err != nil {
		return err
	}
	n.client, err = nats.Connect("", nats.InProcessServer(n), nats.UserInfo(clientName, n.secret),
		nats.NoEcho(), nats.MaxReconnects(-1), nats.ReconnectWait(beatEvery/10),
		nats.ReconnectHandler(func(*nats.Conn) { n.miss("the connection to the own server was lost") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { n.miss(err.Error()) }))
	if err == nil {
		_, err = n.client.Subscribe(changedSubject, func(m *nats.Msg) { n.hear(m.Data) })
	}
	if err == nil {
		_, err = n.client.Subscribe(answerPrefix(n.cfg.Run)+"*", n.answered)
	}
	if err != nil {
		return fmt.Errorf("news: the own server does not serve: %w", err)
	}
	return nil
}

// startServer begins what listens. routes is held.
func (n *News) startServer() error {
	s, err := startServer(n.cfg, n.tls, n.secret, n.log)
	if err != nil {
		return err
	}
	n.server.Store(s)
	n.known, n.reload = nil, s.ReloadOptions
	return nil
}

// InProcessConn is how the own client reaches the server, also one that began anew.
func (n *News) InProcessConn() (net.Conn, error) { return n.server.Load().InProcessConn() }

// beginAnew ends every connection to other nodes, and listens at the same address: some
// may be of a node that is none any more. What is missed meanwhile is read from the store.
// routes is held.
func (n *News) beginAnew(mutual *tls.Config, generation int) error {
	before := n.server.Load()
	before.Shutdown()
	before.WaitForShutdown()
	n.tls = mutual
	if err := n.startServer(); err != nil {
		return err
	}
	n.generation = generation
	return nil
}

// Address is the host:port at which other nodes reach this one, after Listen.
func (n *News) Address() string { return n.cfg.Listen }

// Run tells the others what there is to tell, until ctx ends; then the last of it
// is sent and the port closed.
func (n *News) Run(ctx context.Context) error {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	for {
		if wait := n.flush(time.Now()); wait > 0 {
			due.Reset(wait)
		}
		select {
		case <-ctx.Done():
			n.flush(time.Now().Add(tellAgain))
			return n.Close()
		case m := <-n.questions:
			n.answer(m)
		case <-n.wake:
		case <-due.C:
		case <-beat.C:
			n.beat()
			if n.routes.TryLock() { // else it is being told
				n.route()
				n.routes.Unlock()
			}
		}
	}
}

// Close ends what Listen began. It may be called more than once.
func (n *News) Close() error {
	if n.client != nil {
		_ = n.client.FlushTimeout(closeWait) // what is lost is read from the store
		n.client.Close()
	}
	n.routes.Lock()
	defer n.routes.Unlock()
	n.closed = true
	if s := n.server.Load(); s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
	return nil
}

// Know says which other nodes live. They are connected to, and what nodes say that
// are not among them is not listened to.
func (n *News) Know(nodes []Node) {
	n.expect(nodes)
	var addresses []string
	for _, o := range nodes {
		if o.Address != "" {
			addresses = append(addresses, o.Address)
		}
	}
	slices.Sort(addresses)
	n.routes.Lock()
	defer n.routes.Unlock()
	n.wanted = addresses
	n.route()
}

// route tells the server of the addresses wanted and of another TLS configuration, if it
// does not know them; what fails is tried again at the next beat. routes is held.
func (n *News) route() {
	mutual, generation := n.cfg.TLS()
	if n.closed {
		return
	}
	if generation != n.generation {
		n.log.Info("the nodes are known by another secret: connections for news begin anew")
		if err := n.beginAnew(mutual, generation); err != nil {
			n.log.Warn("listening for the news of other nodes failed", "err", err)
			return
		}
	}
	if slices.Equal(n.wanted, n.known) && mutual == n.tls {
		return
	}
	opts := options(n.cfg, mutual, n.secret)
	for _, a := range n.wanted {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: a})
	}
	if err := n.reload(opts); err != nil {
		n.log.Warn("connecting to the news of other nodes failed", "err", err)
		return
	}
	n.known, n.tls = n.wanted, mutual
}

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"porchlight/agent/remote"
	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

// home is one computer: its short name, what it shows the control plane, and where it
// lives. Only names the one node it uses; empty for what it is told. The network of one
// that is Lossy can be lost.
type home struct {
	Name, Credential, Address, Only string
	Lossy                           bool
}

// app is what every computer has: it answers at notes.NAME.
var app = controlapi.App{ID: "notes", Name: "notes", Label: "Notes", Live: true}

// shared is what the computers of one house have in common.
type shared struct {
	auth     string
	roots    *x509.CertPool
	cert     *tls.Config
	nodes    atomic.Pointer[[]string]
	connects atomic.Int64 // connections to nodes, all that ever were
}

// computer is what an agent is to nodes: its sync and its tunnel, and behind that an app.
type computer struct {
	home
	*shared
	client *controlapi.Client
	tunnel *tunnel.Tunnel
	remote *remote.Remote
	last   atomic.Pointer[controlapi.Snapshot]
	came   broadcast.Signal // a sync was answered, or the tunnel stands again
	stop   context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex // protects what follows
	marked   time.Time
	tried    int       // syncs since then until one was answered, of those that found a node
	answered time.Time // a sync first was since then
	welcomed time.Time // the tunnel last stood again
	failed   error     // the last sync that did
	visitors map[net.Conn]bool
	silent   *atomic.Bool // shared by the connections made since lose; once true, what they hear is lost
	withdrew time.Time    // a snapshot last took something from somebody
	reported bool         // the control plane took the list of apps

	opened broadcast.Signal // a visitor came
}

// newComputer is one with the snapshot that it kept, if it was there before.
func newComputer(h home, in *shared, kept *controlapi.Snapshot) (c *computer, err error) {
	c = &computer{home: h, shared: in, visitors: map[net.Conn]bool{}, silent: new(atomic.Bool), ended: make(chan struct{})}
	c.last.Store(kept)
	transport := controlapi.NewTransport(in.roots)
	transport.DialContext = c.dialControl
	c.client = &controlapi.Client{BaseURL: in.auth, Credential: h.Credential, HTTP: &http.Client{Transport: transport}}
	auth := strings.TrimPrefix(in.auth, "https://")
	c.tunnel, err = tunnel.New(tunnel.Config{
		Open: c.open, Opened: c.opened.Subscribe,
		Relays: c.relays, Last: controlapi.Relay{Address: auth, ServerName: authHost},
		Credential: func() string { return h.Credential }, RootCAs: in.roots,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == auth {
				return c.dialControl(ctx, network, address)
			}
			return c.dial(ctx, network, address)
		},
	})
	if err != nil {
		return nil, err
	}
	c.remote = remote.New(remote.Config{
		Control: counted{c}, Tunnel: countedTunnel{c}, Last: *kept, Apps: func() []controlapi.App { return []controlapi.App{app} }, AppsChanged: make(chan struct{}),
		Knocks:     func() controlapi.KnocksFrom { return controlapi.KnocksFromKnown },
		OnSnapshot: c.take, OnContact: func() {}, OnChange: func() {}, Log: slog.New(slog.DiscardHandler),
	})
	return c, nil
}

// start has the computer connected until ctx ends or stop is called, and then closes ended.
func (c *computer) start(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	go c.run(ctx)
}

// run is what the agent does to stay connected.
func (c *computer) run(ctx context.Context) {
	defer close(c.ended)
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.remote.Run(ctx) })
	wg.Go(func() { _ = c.tunnel.Run(ctx) })
	wg.Go(func() { c.watch(ctx) })
	wg.Go(c.serve)
	wg.Wait()
	c.closeVisitors()
	c.client.HTTP.CloseIdleConnections()
}

// dial comes from the computer's own address.
func (c *computer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.Address)}}
	conn, err := d.DialContext(ctx, network, address)
	if err == nil {
		c.connects.Add(1)
	}
	if err != nil || !c.Lossy {
		return conn, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return programs.HalfOpen{Conn: conn, Silent: c.silent}, nil
}

// open says whether a visitor has something open, at a computer whose network can be lost:
// what there is at the others are connections on which nothing is asked.
func (c *computer) open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Lossy && len(c.visitors) > 0
}

// lose has the network of a lossy computer half open: all connections of now are silent.
func (c *computer) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent.Store(true)
	c.silent = new(atomic.Bool)
}

// dialControl tries the nodes from one of its own on, as if their addresses had been
// mixed by a name server.
func (c *computer) dialControl(ctx context.Context, network, _ string) (conn net.Conn, err error) {
	nodes := *c.nodes.Load()
	if c.Only != "" {
		nodes = []string{c.Only}
	}
	first := int(c.Name[len(c.Name)-1])
	for i := range nodes {
		if conn, err = c.dial(ctx, network, nodes[(first+i)%len(nodes)]); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (c *computer) relays() (use []controlapi.Relay) {
	last := c.last.Load()
	for _, r := range slices.Concat(last.Relays, last.SpareRelays) {
		if c.Only == "" || c.Only == r.Address {
			use = append(use, r)
		}
	}
	return use
}

// take is what the agent does with a snapshot as far as nodes notice. Who has lost
// their access is thrown out.
func (c *computer) take(s controlapi.Snapshot) {
	before := c.last.Swap(&s)
	if given(&s) < given(before) {
		c.mu.Lock()
		c.withdrew = time.Now()
		c.mu.Unlock()
		c.closeVisitors()
	}
	c.tunnel.Relist()
}

// given is how many apps people may open.
func given(s *controlapi.Snapshot) (n int) {
	for _, p := range s.People {
		n += len(p.Apps)
	}
	return n
}

// watch notes when the tunnel stands again, and has the sync try then.
func (c *computer) watch(ctx context.Context) {
	for was := false; ; {
		changed := c.tunnel.Changes()
		is := c.tunnel.Connected()
		if is && !was {
			c.mu.Lock()
			c.welcomed = time.Now()
			c.mu.Unlock()
			c.came.Raise()
		}
		was = is
		if state := c.remote.State(); is && !state.Connected && !state.Refused {
			c.remote.Wake()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// counted is the control plane as the sync meets it.
type counted struct{ *computer }

func (c counted) Answers(ctx context.Context) error { return c.client.Answers(ctx) }

// begin counts a sync.
func (c *computer) begin() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered.Before(c.marked) || c.answered.IsZero() {
		c.tried++
	}
	return time.Now()
}

// note keeps what became of one.
func (c *computer) note(ctx context.Context, began time.Time, err error) {
	defer c.came.Raise()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		c.failed = err
	}
	if (errors.Is(err, syscall.ECONNREFUSED) || controlapi.Deferred(err)) && began.After(c.marked) {
		c.tried-- // nobody listened, or nobody was taken in: no node was asked
	}
	if err == nil {
		c.heard()
	}
}

// heard notes the first answer since the computer was marked; mu is held. What answers then
// is a node of after the mark, also where the sync was begun before: it waits for one.
func (c *computer) heard() {
	if c.answered.Before(c.marked) || c.answered.IsZero() {
		c.answered = time.Now()
	}
}

// countedTunnel is the tunnel as the sync meets it, as far as one begins to wait.
type countedTunnel struct{ *computer }

func (c countedTunnel) Sync(ctx context.Context, version string, take func(controlapi.Snapshot) error) error {
	if c.remote.State().Connected { // nothing is missing, so it is no coming back
		err := c.tunnel.Sync(ctx, version, take)
		if err == nil {
			c.mu.Lock()
			c.heard()
			c.mu.Unlock()
			c.came.Raise()
		}
		return err
	}
	began := c.begin()
	err := c.tunnel.Sync(ctx, version, take)
	c.note(ctx, began, err)
	return err
}

func (c counted) PutApps(ctx context.Context, apps controlapi.Apps) error {
	err := c.client.PutApps(ctx, apps)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reported = true
	}
	return err
}

// back says whether and when the computer was there whole since it was marked.
func (c *computer) back() (at time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at = c.answered
	if c.welcomed.After(at) {
		at = c.welcomed
	}
	return at, c.answered.After(c.marked) && c.welcomed.After(c.marked) && c.tunnel.Connected()
}

// awaitBack waits until the computer is there whole.
func (c *computer) awaitBack(ctx context.Context) {
	came, end := c.came.Subscribe()
	defer end()
	for {
		if _, ok := c.back(); ok {
			return
		}
		select {
		case <-came:
		case <-ctx.Done():
			return
		}
	}
}

// mark begins to look for the computer's coming back.
func (c *computer) mark() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marked, c.tried = time.Now(), 0
}

// serve is the app: as many bytes as it is asked for, again and again.
func (c *computer) serve() {
	for {
		conn, err := c.tunnel.Listener().Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		c.visitors[conn] = true
		c.mu.Unlock()
		c.opened.Raise()
		go func() {
			defer func() {
				_ = conn.Close()
				c.mu.Lock()
				delete(c.visitors, conn)
				c.mu.Unlock()
			}()
			give(tls.Server(conn, c.cert))
		}()
	}
}

// filler is what apps give.
var filler [64 << 10]byte

func give(conn net.Conn) {
	for {
		var asked [8]byte
		if _, err := io.ReadFull(conn, asked[:]); err != nil {
			return
		}
		for n := binary.BigEndian.Uint64(asked[:]); n > 0; {
			written, err := conn.Write(filler[:min(n, uint64(len(filler)))])
			if err != nil {
				return
			}
			n -= uint64(written)
		}
	}
}

func (c *computer) closeVisitors() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.visitors {
		_ = conn.Close()
	}
}

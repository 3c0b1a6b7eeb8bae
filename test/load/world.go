package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"porchlight/control"
	"porchlight/control/kv/pgtest"
	"porchlight/control/serve"
	"porchlight/test/programs"
	"porchlight/test/rig"
)

const domain = "porch.localhost"

// world is a database, nodes on it, and the computers that are connected to them.
type world struct {
	settings
	shape
	dir      string
	program  string // porchlight-control, of this version
	port     int    // of every node, each on an address of its own
	naming   control.Naming
	server   *pgtest.Server // nil where there are several
	cluster  *cluster       // nil where there is one
	database string         // its URL, past any link
	links    []*link        // of the nodes
	running  []*node
	roots    []byte // PEM of every node's authority
	houses   []*house
	homes    []home // computers in the database
	calm     spent  // what was used in a while in which they slept
	cleanup  []func() error
}

// node is one process of porchlight-control.
type node struct {
	*rig.Node
	name, address, dir, database, program string

	mu     sync.Mutex
	health string // guarded by mu: where /readyz is, in this run of it
}

// ready is what a balancer asks.
func (n *node) ready() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.health
}

// authHost is where nodes sign people in, and authURL how that is reached.
const authHost = "control." + domain

func (w *world) authURL() string {
	return "https://" + net.JoinHostPort(authHost, strconv.Itoa(w.port))
}

// shape is what a world is like.
type shape struct {
	nodes   int
	file    bool          // rows are in a file, and there is no database
	servers int           // of PostgreSQL, under Patroni; 0 for one alone
	linked  bool          // each node reaches the database by a link, which can be cut
	away    time.Duration // and so long are its round trips
	pinned  bool          // the first computer uses the first node alone, and can lose its network
	drain   time.Duration // how long a node that is asked to end still takes visitors
	program string        // that nodes are started with; empty for this version's
	houses  string        // the program that computers run in; empty for this one
	dense   bool          // many nodes and computers share the machine: both take less memory, and more time
}

// openWorld starts PostgreSQL whose commits wait for the disk, and nodes.
func openWorld(ctx context.Context, s settings, is shape) (w *world, err error) {
	w = &world{settings: s, shape: is}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "porchlight-load-"); err != nil {
		return w, err
	}
	w.cleanup = append(w.cleanup, func() error { return os.RemoveAll(w.dir) })
	if err := w.findProgram(); err != nil {
		return w, err
	}
	if w.port, err = freePort(is.nodes); err != nil {
		return w, err
	}
	w.naming = control.Naming{Domain: domain, AuthHost: authHost, PublicPort: w.port}
	if err := w.openDatabase(ctx); err != nil {
		return w, err
	}
	for i := range is.nodes {
		if err := w.addNode(ctx, i); err != nil {
			return w, err
		}
	}
	return w, nil
}

// openDatabase starts one server, which counts its statements, or several.
func (w *world) openDatabase(ctx context.Context) (err error) {
	if w.file {
		return nil
	}
	if w.servers > 0 {
		if w.cluster, err = openCluster(ctx, w.servers); err != nil {
			return err
		}
		w.cleanup = append(w.cleanup, w.cluster.Close)
		w.database, err = w.cluster.newDatabase(ctx)
		return err
	}
	if w.server, err = pgtest.Start(pgtest.Options{Durable: true, Settings: []string{
		"shared_preload_libraries=pg_stat_statements", fmt.Sprint("max_connections=", max(200, 20*w.nodes)),
	}}); err != nil {
		return err
	}
	w.cleanup = append(w.cleanup, w.server.Close)
	if w.database, err = w.server.NewDatabase(); err != nil {
		return err
	}
	return w.do(ctx, countStatements)
}

// close ends every process, the last first.
func (w *world) close() (err error) {
	for _, h := range w.houses {
		err = errors.Join(err, h.stop())
	}
	for _, n := range w.running {
		n.Kill()
	}
	for _, l := range w.links {
		_ = l.Close() // its listener is all that could fail
	}
	for i := len(w.cleanup) - 1; i >= 0; i-- {
		err = errors.Join(err, w.cleanup[i]())
	}
	return err
}

func (w *world) findProgram() (err error) {
	dir := w.programs
	if dir == "" {
		if dir, err = programs.Build("porchlight/control/cmd/porchlight-control"); err != nil {
			return err
		}
		w.cleanup = append(w.cleanup, func() error { return os.RemoveAll(dir) })
	}
	w.program = filepath.Join(dir, "porchlight-control")
	return nil
}

// freePort is one that is free at the address of each node.
func freePort(nodes int) (port int, err error) {
	for range 20 {
		ln, err := net.Listen("tcp", nodeAddress(0, 0))
		if err != nil {
			return 0, err
		}
		port = ln.Addr().(*net.TCPAddr).Port
		held := []net.Listener{ln}
		for i := 1; i < nodes && err == nil; i++ {
			if ln, err = net.Listen("tcp", nodeAddress(i, port)); err == nil {
				held = append(held, ln)
			}
		}
		for _, ln := range held {
			_ = ln.Close()
		}
		if err == nil {
			return port, nil
		}
	}
	return 0, errors.New("no port is free at the address of every node")
}

// nodeAddress is 127.0.0.1 for the first node, which is where *.localhost leads.
func nodeAddress(i, port int) string {
	return net.JoinHostPort(fmt.Sprint("127.0.0.", 1+i), strconv.Itoa(port))
}

func (w *world) addNode(ctx context.Context, i int) error {
	n := &node{name: fmt.Sprint("node", i+1), address: nodeAddress(i, w.port), database: w.database, program: cmp.Or(w.shape.program, w.program)}
	n.dir = filepath.Join(w.dir, n.name)
	if w.dense {
		n.database += "&pool_max_conns=8"
	}
	if w.linked {
		l, err := openLink(w.server.Socket(), w.away)
		if err != nil {
			return err
		}
		w.links = append(w.links, l)
		if n.database, err = through(w.database, l.addr()); err != nil {
			return err
		}
	}
	w.running = append(w.running, n)
	if err := w.start(ctx, n); err != nil {
		return err
	}
	authority, err := os.ReadFile(rig.Authority(n.dir))
	w.roots = append(w.roots, authority...)
	return err
}

// through is the URL of a database by another address.
func through(database, addr string) (string, error) {
	u, err := url.Parse(database)
	if err != nil {
		return "", err
	}
	q := u.Query()
	u.Host, u.User, u.RawQuery = addr, url.User(q.Get("user")), url.Values{"sslmode": {"disable"}}.Encode()
	return u.String(), nil
}

// start runs a node, with limits that are never by address: what is simulated comes from
// one machine.
func (w *world) start(ctx context.Context, n *node) (err error) {
	args := []string{
		"--domain", domain, "--auth-host", authHost, "--public-port", strconv.Itoa(w.port),
		"--listen", n.address, "--tunnel-address", n.address, "--grace", serve.DefaultGrace.String(),
		"--outbox", filepath.Join(w.dir, "mails"), "--log-level", "error", "--limit-computers", "20000",
		"--limit-visitors", "4096", "--limit-visitors-per-address", "4096",
		"--metrics", "127.0.0.1:0", "--drain-wait", w.drain.String(),
	}
	if !w.file {
		args = append(args, "--postgres", n.database)
	}
	if w.nodes > 1 {
		args = append(args, "--node", n.name, "--peer-address", "127.0.0.1:0")
	}
	r := rig.Rig{Bin: filepath.Dir(n.program), Begin: programs.Start}
	if n.Node, err = r.Node(ctx, n.dir, args...); err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.health = n.Metrics + "/readyz"
	}
	return err
}

// pool is the certificates that computers and visitors trust.
func (w *world) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.roots)
	return pool
}

func (w *world) addresses() (all []string) {
	for _, n := range w.running {
		all = append(all, n.address)
	}
	return all
}

// says tells what is going on, where that is wanted.
func (w *world) says(format string, args ...any) {
	if w.verbose {
		fmt.Fprintf(os.Stderr, "  "+strings.TrimSpace(format)+"\n", args...)
	}
}

// Package nodes tests several nodes of one control plane from the outside: real
// processes on a real PostgreSQL, a real tunnel of an agent, and visitors who do
// not know which node their computer is connected to.
package nodes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/told"
)

var binaries string

func TestMain(m *testing.M) {
	use := func(dir string) { binaries = dir }
	os.Exit(programs.Main(pgtest.Stopping(m), use, "porchlight/control/cmd/porchlight-control"))
}

// start runs a node of a database.
func start(t *testing.T, name, database, dir string, flags ...string) *rig.Node {
	t.Helper()
	n := programs.Got(rig.In(t, binaries).Node(t.Context(), dir, append(flags, "--domain", "porch.test", "--public-port", "443",
		"--postgres", database, "--node", name, "--peer-address", "127.0.0.1:0")...))(t)
	return n
}

// computer is an agent's tunnel, and behind it an app that says who visits and
// then repeats what it hears.
type computer struct {
	relays atomic.Pointer[[]controlapi.Relay]
	tunnel *tunnel.Tunnel
}

func startComputer(t *testing.T, credential string, roots *x509.CertPool) *computer {
	t.Helper()
	c := &computer{}
	c.relays.Store(&[]controlapi.Relay{})
	c.tunnel = programs.Got(tunnel.New(tunnel.Config{
		Open: func() bool { return false }, Opened: new(broadcast.Signal).Subscribe,
		Relays:     func() []controlapi.Relay { return *c.relays.Load() },
		Credential: func() string { return credential },
		RootCAs:    roots,
	}))(t)
	key := programs.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"anna.porch.test"}, NotAfter: time.Now().Add(time.Hour)}
	der := programs.Got(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.tunnel.Run(ctx) })
	wg.Go(func() {
		for {
			conn, err := c.tunnel.Listener().Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			wg.Go(func() {
				defer stop()
				defer conn.Close()
				secure := tls.Server(conn, config)
				if _, err := fmt.Fprintln(secure, conn.RemoteAddr()); err != nil {
					return
				}
				_, _ = io.Copy(secure, secure)
			})
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return c
}

func (c *computer) use(relays ...controlapi.Relay) {
	c.relays.Store(&relays)
	c.tunnel.Wake()
}

// visit goes to the app by a node, and returns the connection once the app has
// said the visitor's own address.
func visit(addr string) (*tls.Conn, error) {
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, &tls.Config{ServerName: "notes.anna.porch.test", InsecureSkipVerify: true})
	_ = conn.SetDeadline(time.Now().Add(programs.Patience))
	line := make([]byte, len(raw.LocalAddr().String())+1)
	if _, err := io.ReadFull(conn, line); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if got := strings.TrimSpace(string(line)); got != raw.LocalAddr().String() {
		return nil, errors.Join(fmt.Errorf("the app sees %s, and the visitor is %s", got, raw.LocalAddr()), conn.Close())
	}
	return conn, nil
}

// A visitor reaches the computer by whichever node; agents are told of all nodes;
// a node that is killed takes nobody along but who was just using it.
func TestVisitorsAndNodes(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	dirs := []string{t.TempDir(), t.TempDir()}
	one, two := start(t, "one", database, dirs[0]), start(t, "two", database, dirs[1])
	roots := programs.Got(rig.Roots(rig.Authority(dirs[0]), rig.Authority(dirs[1])))(t)
	var added, other struct {
		Credential string `json:"credential"`
	}
	programs.Must(t, one.Run(&added, "account", "add", "anna@example.net", "--short", "anna"))
	programs.Must(t, one.Run(&other, "account", "add", "ben@example.net", "--short", "ben"))

	relays := held(t, one, roots, other.Credential)
	both := func() bool { return len(relays()) == 2 }
	programs.Eventually(t, "agents are told of both nodes", both)

	relayOf := func(n *rig.Node) controlapi.Relay {
		return controlapi.Relay{Address: n.Listens[0], ServerName: "control.porch.test"}
	}
	home := startComputer(t, added.Credential, roots)
	home.use(relayOf(two)) // as if the way to the other were broken
	var conn *tls.Conn
	reach := func(n *rig.Node) func() bool {
		return func() (ok bool) {
			var err error
			conn, err = visit(n.Listens[0])
			return err == nil
		}
	}
	programs.Eventually(t, "a visitor at node two", reach(two))
	_ = conn.Close()
	programs.Eventually(t, "a visitor at node one of a computer at node two", reach(one))
	programs.Got(io.WriteString(conn, "hello"))(t)
	programs.Got(io.ReadFull(conn, make([]byte, 5)))(t)

	t.Log("node two is killed")
	two.Kill()
	if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the visit under way: %d bytes, %v", n, err)
	}
	if _, err := visit(one.Listens[0]); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a visitor while the tunnel is nowhere: %v", err)
	}
	home.use(relays()...) // both, as it was told
	programs.Eventually(t, "a visitor at the node that is left", reach(one))
	_ = conn.Close()
	programs.Eventually(t, "agents are told that one node is left", func() bool { r := relays(); return len(r) == 1 && r[0] == relayOf(one) })

	t.Log("node two comes back")
	two = start(t, "two", database, dirs[1])
	programs.Eventually(t, "agents are told of both again", both)
	programs.Eventually(t, "a visitor at node two of a computer at node one", reach(two))
	_ = conn.Close()

	t.Log("a node of before version 0.1.0 comes")
	earlier := programs.Got(kv.Open(t.Context(), database, kv.Options{}))(t)
	defer earlier.Close()
	row := `{"node":"old","run":"r","peer":"127.0.0.1:1","relay":{"address":"127.0.0.1:1"}}`
	programs.Must(t, earlier.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("relay-node/old", []byte(row), time.Hour) }))
	if _, err := one.Logs(t.Context(), `a version before 0\.1\.0 uses this database, and is refused.*"node":"old"`); err != nil {
		t.Error(err)
	}
	if !both() {
		t.Errorf("agents are told of %v", relays())
	}
}

// held has a sync wait, as an agent does, and returns what it last heard of relays.
func held(t *testing.T, n *rig.Node, roots *x509.CertPool, credential string) func() []controlapi.Relay {
	computer := told.New(t, controlapi.Relay{Address: n.Listens[0], ServerName: "control.porch.test"}, roots, credential)
	ctx, cancel := context.WithCancel(context.Background())
	var last atomic.Pointer[controlapi.Snapshot]
	last.Store(&controlapi.Snapshot{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			s, err := computer.Next(ctx, last.Load().Version)
			switch {
			case err == nil:
				last.Store(&s)
			case ctx.Err() == nil:
				t.Errorf("sync: %v", err)
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return func() []controlapi.Relay { return last.Load().Relays }
}

package serve

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// Two nodes of one database find each other by it, and a change at one wakes who
// waits at the other. How long that takes is logged; that it is by news and not by
// reading is judged in package control.
func TestNewsOfAnotherNode(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	var nodes []*Node
	for _, name := range []string{"one", "two"} {
		n, _ := runNode(t, Config{
			DataDir: t.TempDir(), Postgres: database, Naming: control.Naming{Domain: "porch.test", PublicPort: 443}, Listen: []string{"127.0.0.1:0"},
			Node: name, PeerAddress: "127.0.0.1:0", Grace: time.Second, Log: slog.New(slog.DiscardHandler),
		})
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		programs.Eventually(t, n.cfg.Node+" misses nothing", func() bool { return !n.news.Missed() })
	}
	one, two := nodes[0].service, nodes[1].service
	var took []time.Duration
	for i := range 100 {
		short := fmt.Sprintf("computer%d", i/10)
		added := programs.Got(one.Computers.Ensure(t.Context(), "anna@porch.test", short))(t)
		told, over := make(chan controlapi.Snapshot, 100), make(chan error, 1)
		defer two.Feed.Tell(added.Credential, netip.Addr{}, "", func(s controlapi.Snapshot) error { told <- s; return nil }, func(err error) { over <- err })()
		<-told
		programs.Got(one.Computers.Ensure(t.Context(), "anna@porch.test", short))(t)
		durable := time.Now()
		select {
		case <-over: // that credential has another in its place
		case <-time.After(programs.Patience):
			t.Fatal("a change is not seen at the other node")
		}
		took = append(took, time.Since(durable))
	}
	slices.Sort(took)
	t.Logf("a change at another node: half seen after %v, 99 %% after %v, the last after %v", took[50], took[98], took[99])
}

// Nothing of news starts with one node, nor in a node on a database that has no address
// for others: it has no more listeners than it was told to.
func TestOneNodeHasNoNews(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"on a file":     func(*Config) {},
		"on a database": func(c *Config) { c.Postgres = pgtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{DataDir: t.TempDir(), Naming: control.Naming{Domain: "porch.test", PublicPort: 443}, Listen: []string{"127.0.0.1:0"}, Grace: time.Second, Log: slog.New(slog.DiscardHandler)}
			change(&cfg)
			n, _ := runNode(t, cfg)
			if n.news != nil || n.peers != nil || n.metrics != nil || len(n.listeners) != 1 {
				t.Errorf("news: %v, a listener for other nodes: %v, one for metrics: %v, and %d for visitors", n.news != nil, n.peers != nil, n.metrics != nil, len(n.listeners))
			}
		})
	}
}

// Where nothing else is said, the port for news follows from that for peers; and
// what cannot be is refused with the flag's name.
func TestNewsAddress(t *testing.T) {
	t.Parallel()
	complete := func(peer, news string) (string, error) {
		c := Config{
			DataDir: "x", Postgres: "postgres://db/x", Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"192.0.2.1:443"},
			Node: "one", PeerAddress: peer, NewsAddress: news,
		}
		err := c.Complete()
		return c.NewsAddress, err
	}
	for _, c := range []struct{ peer, news, want string }{
		{"10.0.0.1:7443", "", "10.0.0.1:7543"},
		{"[fd00::1]:7443", "", net.JoinHostPort("fd00::1", "7543")},
		{"127.0.0.1:0", "", "127.0.0.1:0"},
		{"10.0.0.1:7443", "10.0.0.2:9000", "10.0.0.2:9000"},
		{"", "", ""},
	} {
		if got, err := complete(c.peer, c.news); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	for _, c := range [][2]string{{"10.0.0.1:65500", ""}, {"10.0.0.1:7443", ":7543"}, {"10.0.0.1:7443", "10.0.0.1:x"}, {"", "10.0.0.1:7543"}} {
		if got, err := complete(c[0], c[1]); err == nil {
			t.Errorf("%q is taken, as %q", c, got)
		}
	}
}

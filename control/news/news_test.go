package news_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"porchlight/control/news"
	"porchlight/control/relay/peers"
	"porchlight/test/programs"
)

const ourSecret = "the secret that all nodes of ours have in common"

// node is one of several in this process, and remembers what it heard.
type node struct {
	*news.News
	self  news.Node
	heard chan string
	stop  func()
}

func secured(t *testing.T, secret, name string) func() (*tls.Config, int) {
	t.Helper()
	c, err := peers.NewsTLS(func() ([][]byte, error) { return [][]byte{[]byte(secret)}, nil }, name, "127.0.0.1", time.Now)
	programs.Must(t, err)
	return c
}

func mutual(t *testing.T, secret, name string) *tls.Config {
	t.Helper()
	c, _ := secured(t, secret, name)()
	return c
}

func open(t *testing.T, name string, change func(*news.Config)) *node {
	t.Helper()
	n := &node{heard: make(chan string, 1<<16)}
	cfg := news.Config{
		Node: name, Run: "run-of-" + name, Listen: "127.0.0.1:0", TLS: secured(t, ourSecret, name), Log: slog.New(slog.DiscardHandler),
		Heard: func(computers []string) {
			for _, id := range computers {
				n.heard <- id
			}
		},
	}
	if change != nil {
		change(&cfg)
	}
	n.News = programs.Got(news.New(cfg))(t)
	programs.Must(t, n.Listen())
	n.self = news.Node{Name: name, Run: cfg.Run, Address: n.Address()}
	n.stop = programs.Run(t, n.Run)
	return n
}

// meet has nodes know each other, and waits until each hears all others.
func meet(t *testing.T, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		var others []news.Node
		for _, o := range nodes {
			if o != n {
				others = append(others, o.self)
			}
		}
		n.Know(others)
	}
	for _, n := range nodes {
		n.calm(t)
	}
}

// calm waits until a node misses nothing.
func (n *node) calm(t *testing.T) {
	t.Helper()
	programs.Eventually(t, n.self.Name+" misses nothing", func() bool { return !n.Missed() })
}

// hears waits for news of one computer.
func (n *node) hears(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(programs.Patience)
	for {
		select {
		case got := <-n.heard:
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("%s does not hear of %s", n.self.Name, want)
		}
	}
}

func TestThreeNodesHearEachOther(t *testing.T) {
	t.Parallel()
	one, two, three := open(t, "one", nil), open(t, "two", nil), open(t, "three", nil)
	meet(t, one, two, three)
	all := []*node{one, two, three}
	for i, from := range all {
		id := fmt.Sprint("computer", i)
		from.Tell([]string{id})
		for _, to := range all {
			if to != from {
				to.hears(t, id)
			}
		}
	}
	for _, n := range all {
		if n.Missed() {
			t.Errorf("%s takes something for missed", n.self.Name)
		}
		if len(n.heard) != 0 {
			t.Errorf("%s heard %d times more", n.self.Name, len(n.heard))
		}
	}

	// More than one message holds arrives whole.
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprint("many", i))
	}
	one.Tell(many)
	left := map[string]bool{}
	for _, id := range many {
		left[id] = true
	}
	for len(left) > 0 {
		select {
		case id := <-two.heard:
			delete(left, id)
		case <-time.After(programs.Patience):
			t.Fatalf("%d computers were not heard of", len(left))
		}
	}

	// A node that ends is missed for as long as it is taken for alive.
	three.stop()
	if all := one.Unheard(time.Hour); len(all) != 0 {
		t.Errorf("not heard for an hour: %q", all)
	}
	programs.Eventually(t, "the silence of a node is noticed", one.Missed)
	programs.Eventually(t, "it is named", func() bool { return slices.Equal(one.Unheard(0), []string{three.self.Run}) })
	one.Know([]news.Node{two.self})
	one.calm(t)
}

// A node that lives and tells nothing, because it is of an earlier version, keeps
// the others looking for themselves.
func TestNodeWithoutNews(t *testing.T) {
	t.Parallel()
	one, two := open(t, "one", nil), open(t, "two", nil)
	meet(t, one, two)
	one.Know([]news.Node{two.self, {Name: "old", Run: "r"}})
	for range 3 {
		if !one.Missed() {
			t.Fatal("nothing is missed, and a node without news lives")
		}
	}
	one.Know([]news.Node{two.self})
	one.calm(t)
}

// What one tenant does a thousand times a moment is told a few times.
func TestOneTenantsFlood(t *testing.T) {
	t.Parallel()
	one, two := open(t, "one", nil), open(t, "two", nil)
	meet(t, one, two)
	const computers = 50 // as many as an account can have
	begun := time.Now()
	for i := range 20_000 {
		one.Tell([]string{fmt.Sprint("busy", i%computers)})
	}
	one.Tell([]string{"quiet"})
	times := map[string]int{}
	for len(times) <= computers { // the flood took nobody's turn, in whatever order one round tells
		select {
		case id := <-two.heard:
			times[id]++
		case <-time.After(programs.Patience):
			t.Fatalf("%d computers are told of, another tenant's %d times", len(times), times["quiet"])
		}
	}
	most := int(time.Since(begun)/(25*time.Millisecond)) + 2
	for id, n := range times {
		if n > most {
			t.Errorf("400 changes of the computer %s were told %d times in %v", id, n, time.Since(begun))
		}
	}
}

// More computers than are told of at a time are not told of, and everybody knows
// that they have to look.
func TestTooMuchToTell(t *testing.T) {
	t.Parallel()
	one, two := open(t, "one", nil), open(t, "two", nil)
	meet(t, one, two)
	many := make([]string, 1<<14+1)
	for i := range many {
		many[i] = fmt.Sprint("c", i)
	}
	one.Tell(many)
	programs.Eventually(t, "two knows that it missed something", two.Missed)
	one.Tell([]string{"after"})
	two.hears(t, "after")
}

// A message that is lost shows at the next one, or at the next beat.
func TestLostMessageIsNoticed(t *testing.T) {
	t.Parallel()
	lose := make(chan bool, 1)
	one := open(t, "one", nil)
	two := open(t, "two", func(c *news.Config) {
		c.Lose = func() bool {
			select {
			case <-lose:
				return true
			default:
				return false
			}
		}
	})
	meet(t, one, two)
	for range 3 {
		lose <- true
		one.Tell([]string{"unheard"}) // or a beat of one is lost, and this is heard
		programs.Eventually(t, "it is heard, or known to be missed", func() bool { return two.Missed() || len(two.heard) > 0 })
		for len(two.heard) > 0 {
			<-two.heard
		}
		programs.Eventually(t, "the message to be lost came", func() bool { return len(lose) == 0 })
		two.calm(t)
	}
}

// member is a server that can show a certificate of a secret, and says what it
// likes: a node that went wrong, where the secret is ours.
func member(t *testing.T, secret string, to ...*node) *nats.Conn {
	t.Helper()
	opts := &server.Options{
		ServerName: "evil", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, NoSystemAccount: true,
		Cluster: server.ClusterOpts{Name: "porchlight", Host: "127.0.0.1", Port: server.RANDOM_PORT, PoolSize: 1},
	}
	if secret != "" {
		opts.Cluster.TLSConfig = mutual(t, secret, "evil")
	}
	for _, n := range to {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: n.Address()})
	}
	s := programs.Got(server.NewServer(opts))(t)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(programs.Patience) {
		t.Fatal("the stranger's server does not start")
	}
	c := programs.Got(nats.Connect("", nats.InProcessServer(s)))(t)
	t.Cleanup(c.Close)
	return c
}

// say publishes until ctx of the test ends or until is true.
func sayUntil(t *testing.T, c *nats.Conn, message []byte, until func() bool) {
	t.Helper()
	programs.Eventually(t, "a message shows", func() bool {
		if err := c.Publish("changed", message); err != nil {
			t.Error(err)
		}
		_ = c.FlushTimeout(time.Second)
		return until()
	})
}

func said(t *testing.T, from news.Node, number uint64, computers ...string) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"node": from.Name, "run": from.Run, "number": number, "changed": computers})
	programs.Must(t, err)
	return b
}

// Even a node gets nothing by what it says but that others read the store: not in
// the name of a node that does not live, not with a number that was there, and not
// with more than a message holds.
func TestForgedMessages(t *testing.T) {
	t.Parallel()
	one, two := open(t, "one", nil), open(t, "two", nil)
	meet(t, one, two)
	evil := member(t, ourSecret, one)

	// In the name of nobody that lives: everything is looked at, once.
	sayUntil(t, evil, said(t, news.Node{Name: "three", Run: "r"}, 1, "forged"), one.Missed)
	sayUntil(t, evil, said(t, news.Node{Name: "two", Run: "earlier"}, 1<<40, "forged"), one.Missed)
	if len(one.heard) != 0 {
		t.Errorf("one heard %q of nobody that lives", <-one.heard)
	}

	two.Tell([]string{"first"})
	one.hears(t, "first")
	two.Tell([]string{"second"})
	one.hears(t, "second")
	large := said(t, two.self, 1<<40, strings.Repeat("x", 5000))
	var ids []string
	for i := range 300 {
		ids = append(ids, fmt.Sprint(i))
	}
	for _, m := range [][]byte{
		said(t, two.self, 1, "forged"), said(t, two.self, 2, "forged"), // said before
		large, said(t, two.self, 1<<40, ids...), said(t, two.self, 1<<40, "../x"), []byte("{"), nil,
		said(t, one.self, 1<<40, "forged"), // in its own name
	} {
		programs.Must(t, evil.Publish("changed", m))
	}
	// In the order of one connection, so what came before this was dropped.
	sayUntil(t, evil, said(t, news.Node{Name: "three", Run: "r"}, 1), one.Missed)
	if len(one.heard) != 0 {
		t.Errorf("one heard %q", <-one.heard)
	}
	two.Tell([]string{"third"})
	one.hears(t, "third")
	one.calm(t)

	// A number from far ahead silences its node's next ones, and that is noticed.
	sayUntil(t, evil, said(t, two.self, 1<<40, "ahead"), one.Missed)
	programs.Eventually(t, "two is not heard any more, and missed", func() bool {
		_ = one.Missed() // what was owed for the gap; the silence goes on
		return one.Missed()
	})
}

// Who has no certificate of this control plane is not let in, and is not connected
// to either.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	one := open(t, "one", nil)
	for _, secret := range []string{"the secret of some other control plane's nodes", "" /* no TLS at all */} {
		stranger := member(t, secret, one)
		for range 20 {
			programs.Must(t, stranger.Publish("changed", said(t, news.Node{Name: "x", Run: "x"}, 1, "forged")))
		}
	}
	// The port itself: without a certificate, and with one of another authority.
	for what, config := range map[string]*tls.Config{
		"no certificate":                 {InsecureSkipVerify: true},
		"a certificate of another one's": {InsecureSkipVerify: true, GetClientCertificate: mutual(t, "the secret of some other control plane's nodes", "one").GetClientCertificate},
	} {
		if err := handshake(t, one.Address(), config); err == nil {
			t.Errorf("%s: the port takes it", what)
		}
	}
	ours := mutual(t, ourSecret, "two")
	ours.ServerName = "127.0.0.1"
	if err := handshake(t, one.Address(), ours); err != nil {
		t.Errorf("a node of ours is refused: %v", err)
	}

	// A node that is told of a stranger's address tells it nothing.
	foreign := open(t, "foreign", func(c *news.Config) {
		c.TLS = secured(t, "the secret of some other control plane's nodes", "foreign")
	})
	two := open(t, "two", nil)
	one.Know([]news.Node{two.self, foreign.self})
	two.Know([]news.Node{one.self, foreign.self})
	foreign.Know([]news.Node{one.self, two.self})
	one.Tell([]string{"ours"})
	programs.Eventually(t, "one is heard by its own", func() bool {
		one.Tell([]string{"ours"})
		return len(two.heard) > 0
	})
	if len(foreign.heard) != 0 || len(one.heard) != 0 {
		t.Errorf("a stranger heard %d messages, and one %d", len(foreign.heard), len(one.heard))
	}
	if !one.Missed() {
		t.Error("a node that cannot be heard is not missed")
	}
}

// handshake does what a node does at another's port: it speaks TLS, in which the
// server then introduces itself.
func handshake(t *testing.T, addr string, config *tls.Config) error {
	t.Helper()
	raw, err := net.Dial("tcp", addr)
	programs.Must(t, err)
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(programs.Patience))
	config.NextProtos = []string{"porchlight-news/2"}
	secure := tls.Client(raw, config)
	if err := secure.Handshake(); err != nil {
		return err
	}
	_, err = secure.Read(make([]byte, 1)) // TLS 1.3 refuses a client's certificate here
	return err
}

// A configuration that would not ask the other side for a certificate is refused.
func TestConfigVerifiesBothSides(t *testing.T) {
	t.Parallel()
	good := news.Config{
		Node: "one", Run: "r", Listen: "127.0.0.1:0", TLS: secured(t, ourSecret, "one"),
		Heard: func([]string) {}, Log: slog.New(slog.DiscardHandler),
	}
	programs.Got(news.New(good))(t)
	for what, change := range map[string]func(*news.Config){
		"no TLS": func(c *news.Config) { c.TLS = nil },
		"clients unasked": func(c *news.Config) {
			lax := mutual(t, ourSecret, "one").Clone()
			lax.ClientAuth = tls.NoClientCert
			c.TLS = func() (*tls.Config, int) { return lax, 0 }
		},
		"servers unasked": func(c *news.Config) {
			lax := mutual(t, ourSecret, "one").Clone()
			lax.InsecureSkipVerify = true
			c.TLS = func() (*tls.Config, int) { return lax, 0 }
		},
		"a name":     func(c *news.Config) { c.Node = "a b" },
		"an address": func(c *news.Config) { c.Listen = "7543" },
	} {
		bad := good
		change(&bad)
		if _, err := news.New(bad); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}

// Addresses that the server refused once are told again, though Know says nothing new.
func TestRefusedAddressesAreToldAgain(t *testing.T) {
	t.Parallel()
	one, two := open(t, "one", nil), open(t, "two", nil)
	one.RefuseOnce()
	two.RefuseOnce()
	meet(t, one, two)
	one.Tell([]string{"anna"})
	two.hears(t, "anna")
}

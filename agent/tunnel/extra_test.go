package tunnel_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/kv"
	"porchlight/control/relay"
	"porchlight/control/relay/peers"
	"porchlight/test/programs"
)

// cluster is four relays of one control plane, and a computer that uses those that are
// listed: the first two, until its visitors have it come to the others.
type cluster struct {
	*world
	relays [4]*relay.Relay
	at     [4]string
	stops  [4]func()
	clock  *movedClock
	dialled
}

// movedClock is moved by hand.
type movedClock struct{ ahead atomic.Int64 }

func (c *movedClock) Now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *movedClock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// dialled counts the connections to each address.
type dialled struct {
	mu    sync.Mutex
	count map[string]int // guarded by mu
}

func startCluster(t *testing.T, listed int, o options) *cluster {
	t.Helper()
	store := programs.Got(kv.Open(t.Context(), "memory:", kv.Options{}))(t)
	t.Cleanup(func() { _ = store.Close() })
	c := &cluster{world: &world{t: t, log: &syncBuffer{}}, clock: &movedClock{}}
	c.count = make(map[string]int)
	log := slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for i, name := range []string{"one", "two", "three", "four"} {
		between := programs.Got(relay.Listen(t.Context(), "127.0.0.1:0"))(t)
		c.at[i] = programs.FreeAddress(t)
		c.relays[i], _, c.stops[i] = startRelay(t, c.at[i], log, func(cfg *relay.Config) {
			cfg.Node = name
			if o.relay != nil {
				o.relay(cfg)
			}
			cfg.Peers = &peers.Config{
				Store: store, Secrets: func() ([][]byte, error) { return [][]byte{bytes.Repeat([]byte("s"), 32)}, nil }, Listener: between, Address: between.Addr().String(),
				Relay: controlapi.Relay{Address: c.at[i], ServerName: authHost}, Domain: "localhost",
				// No news: each relay asks all others who has a tunnel.
				News: func() string { return "" }, Hold: func(string, func(string) bool) {}, Unheard: func(time.Duration) []string { return nil },
				Holders: func(context.Context, string, int) (runs, without []string) { return nil, nil },
			}
		})
	}
	for _, r := range c.relays {
		programs.Eventually(t, "the relays know each other", func() bool { return len(r.RelaysFor("computer-1")) == 4 })
	}
	cfg := toRelays(c.at[:listed]...)
	cfg.Log, cfg.Now, cfg.Dial = log, c.clock.Now, new(net.Dialer).DialContext
	if o.tunnel != nil {
		o.tunnel(&cfg)
	}
	dial := cfg.Dial
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c.mu.Lock()
		c.count[address]++
		c.mu.Unlock()
		return dial(ctx, network, address)
	}
	c.tunnel = programs.Got(tunnel.New(cfg))(t)
	tunnel.GoHomeAfter(c.tunnel, time.Hour)
	c.stopTunnel = c.run(o)
	c.has(0, 1)
	c.has(1, 1)
	c.addr = c.at[2]
	return c
}

// has waits until a relay has so many control connections of the computer.
func (c *cluster) has(i, sessions int) {
	c.t.Helper()
	programs.Eventually(c.t, "control connections of a relay", func() bool { return c.relays[i].Stats().Sessions == sessions })
}

func (c *cluster) dials(address string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[address]
}

// greeted is a visitor who has been served, at the third relay mostly.
func (c *cluster) greeted() *tls.Conn {
	c.t.Helper()
	var conn *tls.Conn
	programs.Eventually(c.t, "a visitor is served", func() (ok bool) {
		var err error
		conn, err = c.visit("maya.localhost")
		return err == nil
	})
	c.t.Cleanup(func() { _ = conn.Close() })
	programs.Must(c.t, echo(conn, []byte("x")))
	return conn
}

// attracts has visitors come to the third relay until the computer is asked to come, and
// returns the first.
func (c *cluster) attracts() *tls.Conn {
	c.t.Helper()
	first, before := c.greeted(), c.asked()
	programs.Eventually(c.t, "the computer is asked to come", func() bool {
		if c.asked() == before {
			_ = c.greeted().Close()
		}
		return c.asked() > before
	})
	return first
}

func (c *cluster) asked() (n uint64) {
	for _, r := range c.relays {
		n += r.Stats().AskedToCome
	}
	return n
}

// comes has the computer come to the third relay.
func (c *cluster) comes() (passedOn *tls.Conn) {
	c.t.Helper()
	passedOn = c.attracts()
	c.has(2, 1)
	return passedOn
}

// servedDirectly wants the next visitor at the third relay not to be passed on.
func (c *cluster) servedDirectly() *tls.Conn {
	c.t.Helper()
	was := c.relays[2].Stats()
	conn := c.greeted()
	if is := c.relays[2].Stats(); is.PassedOn != was.PassedOn || is.Visits != was.Visits+1 {
		c.t.Errorf("the next visitor was passed on: %+v", is)
	}
	return conn
}

// Weakness: visitors who kept landing on a relay without the computer's tunnel were passed
// on for ever. Checked: the computer comes there, beside the two that it has; who was passed
// on before stays, the next one is served there, a kick there ends that visit, and when
// nobody comes any more the computer leaves, but not while a visit that came by it is open.
func TestComesToWhereItsVisitorsAre(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, options{})
	passedOn := c.comes()
	direct := c.servedDirectly()
	if err := errors.Join(echo(passedOn, []byte("y")), echo(direct, []byte("z"))); err != nil {
		t.Errorf("both go on: %v", err)
	}
	c.has(0, 1)
	c.has(1, 1)

	c.clock.advance(tunnelwire.AsleepAfter)
	c.tunnel.Wake() // who waits looks at the clock
	if err := echo(direct, []byte("open")); err != nil {
		t.Error(err)
	}
	c.servedDirectly().Close()
	direct.Close()
	programs.Eventually(t, "the computer leaves", func() bool {
		c.clock.advance(tunnelwire.AsleepAfter)
		c.tunnel.Wake()
		return c.relays[2].Stats().Sessions == 0
	})
	if !strings.Contains(c.log.String(), "nobody has come by the relay for a while") {
		t.Errorf("for another reason:\n%s", c.log)
	}

	tunnel.Come(c.tunnel, c.at[2]) // the other relay would ask after a minute
	c.has(2, 1)
	direct = c.servedDirectly()
	for _, r := range c.relays {
		r.Kick("computer-1")
	}
	if n, err := direct.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("a kick leaves the visit: %d bytes, %v", n, err)
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// Attack: a relay asks the computer to come to an address that is in no list of the control
// plane. Checked: nobody calls there.
func TestComesToListedRelaysOnly(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2, options{})
	c.attracts()
	programs.Eventually(t, "the computer has heard it", func() bool { return strings.Contains(c.log.String(), "one that is not listed") })
	if n := c.dials(c.at[2]); n != 0 || c.relays[2].Stats().Sessions != 0 {
		t.Errorf("%d calls", n)
	}
	if err := echo(c.greeted(), []byte("passed on as ever")); err != nil {
		t.Error(err)
	}
}

// A slot that needs a relay takes the place of the extra session there, whose visits go on;
// and a relay that goes away is left at once.
func TestSlotsComeFirst(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, options{})
	c.comes()
	direct := c.servedDirectly()
	c.stops[0]()
	programs.Eventually(t, "the slot is there instead", func() bool {
		return strings.Contains(c.log.String(), "connected to the relay's node for good") && c.relays[2].Stats().Sessions == 1
	})
	c.has(1, 1)
	if err := echo(direct, []byte("goes on")); err != nil {
		t.Error(err)
	}
	c.servedDirectly()
}

func TestExtraRelayGoesAway(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, options{})
	c.comes()
	direct := c.servedDirectly()
	stopped := make(chan struct{})
	go func() { c.stops[2](); close(stopped) }()
	programs.Eventually(t, "it is left", func() bool { return strings.Contains(c.log.String(), `err="the relay is going away"`) })
	if err := echo(direct, []byte("goes on")); err != nil {
		t.Error(err)
	}
	_ = direct.Close()
	<-stopped
}

// Weakness: a slot that connects to the node of an extra session, between that session's
// noting of its node and of itself, did not see it, and both stayed. Checked: the extra one
// leaves.
func TestSlotComesWhileExtraSessionBegins(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	begins, goesOn := make(chan struct{}), make(chan struct{})
	c := startCluster(t, 3, options{tunnel: func(cfg *tunnel.Config) {
		cfg.Opened = func() (<-chan struct{}, func()) {
			if armed.CompareAndSwap(true, false) {
				close(begins)
				<-goesOn
			}
			return nothing()
		}
	}})
	programs.Eventually(t, "both slots are connected", func() bool { return strings.Count(c.log.String(), `msg="connected to the relay"`) == 2 })
	armed.Store(true)
	tunnel.Come(c.tunnel, c.at[2])
	<-begins
	c.stops[0]()
	c.has(2, 2)
	c.servedDirectly() // by the slot, which goes on from where it looks for others
	close(goesOn)
	c.has(2, 1)
	if c.relays[2].Stats().Extra != 0 {
		t.Error("the extra one has stayed")
	}
}

// Attack: strangers have a computer come to a relay, and park there all that its extra
// sessions may. Checked: the visitors of the next relay are served at once.
func TestExtraSessionsDoNotStarveEachOther(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4, options{
		relay:  func(cfg *relay.Config) { cfg.Limits.PoolMin = 64 }, // which no relay gets, and none gives back
		tunnel: func(cfg *tunnel.Config) { cfg.Files = 256 },
	})
	tunnel.Come(c.tunnel, c.at[2])
	c.has(2, 1)
	c.servedDirectly()
	programs.Eventually(t, "the third parks all it gets", func() bool { return c.relays[2].Stats().Parked >= 8 })
	tunnel.Come(c.tunnel, c.at[3])
	c.has(3, 1)
	c.addr = c.at[3]
	if err := echo(c.mustVisit("maya.localhost"), []byte("served")); err != nil {
		t.Error(err)
	}
	if s := c.relays[3].Stats(); s.Visits != 1 || s.PassedOn != 0 {
		t.Errorf("not by its own relay: %+v", s)
	}
}

// Weakness of an extra session that is not dialled again: where the network goes under it,
// its relay does not hear that a visit was aborted. Checked as for the slots, which lose
// nothing here: the visitor's connection is reset, also where the relay has no room for the
// computer at first.
func TestExtraRelaysAreToldOfAbortedVisits(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"at once": false, "once there is room": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := network{gone: new(atomic.Bool)}
			abort := make(chan struct{})
			var refuse atomic.Bool
			c := startCluster(t, 3, options{
				relay: func(cfg *relay.Config) {
					if cfg.Node != "three" {
						return
					}
					cfg.Authenticate = func(ctx context.Context, credential string) (controlapi.Computer, error) {
						if refuse.CompareAndSwap(true, false) {
							return controlapi.Computer{}, &controlapi.Error{Code: controlapi.CodeUnavailable, RetryAfter: time.Second}
						}
						return authenticate(ctx, credential)
					}
				},
				tunnel: func(c *tunnel.Config) {
					third, dial := c.Relays()[2].Address, c.Dial
					c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
						if address == third {
							return n.dial(ctx, network, address)
						}
						return dial(ctx, network, address)
					}
				},
				app: abortsWhen(abort),
			})
			c.comes()
			direct := c.servedDirectly()
			refuse.Store(refused)
			n.lose(t)
			c.tunnel.Wake() // so that the loss is noticed soon
			close(abort)
			if _, err := direct.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the visitor is told %v; log:\n%s", err, c.log)
			}
			if refuse.Load() {
				t.Error("the relay refused nobody")
			}
		})
	}
}

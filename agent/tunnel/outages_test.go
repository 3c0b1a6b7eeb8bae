package tunnel_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/relay"
	"porchlight/test/programs"
)

func TestAgentDiesMidFlow(t *testing.T) {
	t.Parallel()
	var box *middlebox
	w := start(t, options{
		app: func(conn *tls.Conn) { _, _ = io.Copy(conn, endless{}) },
		via: func(to string) string { var addr string; box, addr = startMiddlebox(t, to, ""); return addr },
	})
	w.connected(true)
	conn := w.mustVisit("notes.maya.localhost")
	programs.Got(io.CopyN(io.Discard, conn, 4<<20))(t)
	box.cutAll()
	if _, err := io.Copy(io.Discard, conn); err == nil {
		t.Error("the visitor was told a clean end of a download that was cut")
	}
	w.connected(false)
	_ = conn.Close()
	programs.Eventually(t, "the visit is over", func() bool { return w.relay.Stats().Visitors == 0 })
}

// What the agent cuts off the relay lets go of at once, however long the visitor
// keeps their own side open, and the visitor does not take it for an end in order.
func TestAbortedVisitsAreLetGo(t *testing.T) {
	t.Parallel()
	type visitor interface {
		Abort() error
		Cut() bool
	}
	ways := map[string]func(visitor) error{"closed": visitor.Abort}
	if runtime.GOOS == "linux" {
		ways["left to be closed"] = func(conn visitor) error {
			if !conn.Cut() {
				return errors.New("it was not cut")
			}
			return nil
		}
	}
	for name, end := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 1)
			w := start(t, options{app: func(conn *tls.Conn) {
				_, err := io.ReadFull(conn, make([]byte, 1))
				if err == nil {
					err = end(conn.NetConn().(visitor))
				}
				ended <- err
				<-t.Context().Done()
			}})
			w.connected(true)
			conn := w.mustVisit("notes.maya.localhost")
			programs.Got(io.WriteString(conn, "x"))(t)
			programs.Must(t, <-ended)
			programs.Eventually(t, "the relay has let go", func() bool { return w.relay.Stats().Visitors == 0 })
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the visitor is told %v", err)
			}
		})
	}
}

func TestRelayRestart(t *testing.T) {
	t.Parallel()
	w := start(t, options{})
	w.connected(true)
	w.stopRelay()
	w.connected(false)
	r, _, _ := startRelay(t, w.addr, nil, nil)
	w.tunnel.Wake()
	w.connected(true)
	programs.Must(t, echo(w.mustVisit("maya.localhost"), []byte("back again")))
	if r.Stats().Visits != 1 {
		t.Errorf("%+v", r.Stats())
	}
}

func TestDrainLetsVisitsFinish(t *testing.T) {
	t.Parallel()
	w := start(t, options{relay: func(c *relay.Config) { c.Grace = wait }})
	w.connected(true)
	conn := w.mustVisit("maya.localhost")
	programs.Must(t, echo(conn, []byte("before")))
	stopped := make(chan struct{})
	go func() { w.stopRelay(); close(stopped) }()
	w.connected(false) // the agent was told to go elsewhere
	programs.Must(t, echo(conn, []byte("while draining")))
	_ = conn.Close()
	select {
	case <-stopped:
	case <-time.After(wait / 2):
		t.Fatal("the relay waits although nobody is left")
	}
}

func TestWrongCredential(t *testing.T) {
	t.Parallel()
	var current atomic.Value
	current.Store("not-the-credential-of-maya")
	w := start(t, options{tunnel: func(c *tunnel.Config) { c.Credential = func() string { return current.Load().(string) } }})
	programs.Eventually(t, "the credential is refused", func() bool { return w.relay.Stats().Unauthentic > 0 })
	if w.tunnel.Connected() {
		t.Fatal("connected with a wrong credential")
	}
	programs.Eventually(t, "the owner can read why", func() bool { return strings.Contains(w.log.String(), "credential is not valid") })
	current.Store(credential)
	w.tunnel.Wake()
	w.connected(true)
	if strings.Contains(w.log.String(), "credential-of-maya") {
		t.Error("a credential is in the log")
	}
}

func TestKick(t *testing.T) {
	t.Parallel()
	var valid atomic.Bool
	valid.Store(true)
	w := start(t, options{relay: func(c *relay.Config) {
		c.Authenticate = func(ctx context.Context, cred string) (controlapi.Computer, error) {
			if !valid.Load() {
				cred = ""
			}
			return authenticate(ctx, cred)
		}
	}})
	w.connected(true)
	conn := w.mustVisit("maya.localhost")
	valid.Store(false)
	w.relay.Kick("computer-1")
	if err := echo(conn, []byte("still there?")); err == nil {
		t.Error("a visit outlived the kick")
	}
	w.connected(false)
	if _, err := w.visit("maya.localhost"); err == nil {
		t.Error("a visit came in after the kick")
	}
}

func TestSecondConnectionTakesOver(t *testing.T) {
	t.Parallel()
	w := start(t, options{})
	w.connected(true)
	log := w.log
	other := &world{t: t, relay: w.relay, addr: w.addr, log: log}
	other.tunnel, _ = tunnel.New(toRelays(w.addr))
	other.run(options{app: func(conn *tls.Conn) { _, _ = io.WriteString(conn, "the newer"); _ = conn.CloseWrite() }})
	other.connected(true)
	programs.Eventually(t, "both are there", func() bool { return w.relay.Stats().Sessions == 2 })
	if got, err := io.ReadAll(w.mustVisit("maya.localhost")); string(got) != "the newer" {
		t.Fatalf("%q, %v", got, err)
	}
}

// Of many relays two are connected, never two addresses of one node, and neither one
// that is dead nor one that refuses holds anything up.
func TestTwoRelays(t *testing.T) {
	t.Parallel()
	first, firstAddr, _ := startRelay(t, "127.0.0.1:0", nil, named("first"))
	same, sameAddr, _ := startRelay(t, "127.0.0.1:0", nil, named("first"))
	second, secondAddr, stopSecond := startRelay(t, "127.0.0.1:0", nil, named("second"))
	spare, spareAddr, _ := startRelay(t, "127.0.0.1:0", nil, named("spare"))
	_, refusingAddr, _ := startRelay(t, "127.0.0.1:0", nil, func(c *relay.Config) {
		c.Authenticate = func(context.Context, string) (controlapi.Computer, error) {
			return controlapi.Computer{}, errors.New("the store is away")
		}
	})
	w := start(t, options{tunnel: func(c *tunnel.Config) {
		c.Relays = listOf(programs.FreeAddress(t), refusingAddr, firstAddr, sameAddr, secondAddr, spareAddr)
	}})
	programs.Eventually(t, "two nodes are connected", func() bool {
		return first.Stats().Sessions+same.Stats().Sessions == 1 && second.Stats().Sessions+spare.Stats().Sessions == 1
	})
	// The relay asked to be left alone for five seconds, which holds for it alone.
	waited := regexp.MustCompile(`relay=` + refusingAddr + `.*cannot check credentials.*again=(\S+)`).FindStringSubmatch(w.log.String())
	if waited == nil {
		t.Error("the relay that refuses was not asked")
	} else if again, err := time.ParseDuration(waited[1]); err != nil || again > 2*time.Second {
		t.Errorf("a slot waits for %v, %v, because one relay refuses", again, err)
	}
	stopSecond()
	programs.Eventually(t, "two nodes are connected again", func() bool {
		return first.Stats().Sessions+same.Stats().Sessions == 1 && spare.Stats().Sessions == 1
	})
	w.addr = spareAddr
	programs.Must(t, echo(w.mustVisit("maya.localhost"), []byte("by the spare one")))
}

// A relay whose address is silent is waited for less while there is another.
func TestSilentAddressesAreLeftSoon(t *testing.T) {
	t.Parallel()
	_, lives, _ := startRelay(t, "127.0.0.1:0", nil, named("lives"))
	const silent, silentToo = "192.0.2.1:443", "192.0.2.2:443"
	var mu sync.Mutex
	waits := map[string]time.Duration{} // guarded by mu: of the first time
	both := make(chan struct{})         // closed when both were dialled
	w := start(t, options{tunnel: func(c *tunnel.Config) {
		c.Relays = listOf(silent, silentToo, lives)
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == lives {
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
			end, _ := ctx.Deadline()
			mu.Lock()
			if _, ok := waits[addr]; !ok {
				if waits[addr] = time.Until(end); len(waits) == 2 {
					close(both)
				}
			}
			mu.Unlock()
			select {
			case <-both:
			case <-ctx.Done():
			}
			return nil, errors.New("nobody answers")
		}
	}})
	w.connected(true)
	mu.Lock()
	defer mu.Unlock()
	if waits[silent] > 3*time.Second || waits[silentToo] > 3*time.Second {
		t.Errorf("the wait is %v", waits)
	}
}

// Who had to take a spare relay goes back when the one before it answers again.
func TestBackHome(t *testing.T) {
	t.Parallel()
	home := programs.FreeAddress(t)
	w := start(t, options{relay: named("second")})
	spare, spareAddr, _ := startRelay(t, "127.0.0.1:0", nil, named("spare"))
	w.anew(toRelays(home, w.addr, spareAddr), 50*time.Millisecond)
	programs.Eventually(t, "the spare one is used", func() bool { return spare.Stats().Sessions == 1 && w.relay.Stats().Sessions == 1 })
	first, _, _ := startRelay(t, home, nil, named("first"))
	programs.Eventually(t, "the computer is where it is wanted", func() bool {
		return first.Stats().Sessions == 1 && w.relay.Stats().Sessions == 1 && spare.Stats().Sessions == 0
	})
}

// Weakness: a relay that refused with a time to wait was never asked again, and for one
// that answers and refuses a session that worked was ended again and again. Checked: both
// are asked, without a Wake, the session stays until one welcomes, and then it moves.
func TestBackHomeAfterRefusals(t *testing.T) {
	t.Parallel()
	for name, asksFor := range map[string]time.Duration{"with a wait": time.Second, "without": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var full atomic.Bool
			var asked, came atomic.Int32 // the one that refuses, the spare one
			full.Store(true)
			home, homeAddr, _ := startRelay(t, "127.0.0.1:0", nil, func(c *relay.Config) {
				c.Node = "home"
				c.Authenticate = func(ctx context.Context, cred string) (controlapi.Computer, error) {
					asked.Add(1)
					if full.Load() {
						return controlapi.Computer{}, &kv.BusyError{RetryAfter: asksFor}
					}
					return authenticate(ctx, cred)
				}
			})
			_, secondAddr, _ := startRelay(t, "127.0.0.1:0", nil, named("second"))
			spare, spareAddr, _ := startRelay(t, "127.0.0.1:0", nil, func(c *relay.Config) {
				c.Node = "spare"
				c.Authenticate = func(ctx context.Context, cred string) (controlapi.Computer, error) {
					came.Add(1)
					return authenticate(ctx, cred)
				}
			})
			w := start(t, options{})
			w.anew(toRelays(homeAddr, secondAddr, spareAddr), 20*time.Millisecond)
			programs.Eventually(t, "the relay that refuses is asked again", func() bool { return asked.Load() >= 3 && spare.Stats().Sessions == 1 })
			if n := came.Load(); n != 1 {
				t.Errorf("the spare relay was connected to %d times while the other one refused", n)
			}
			full.Store(false)
			programs.Eventually(t, "the computer is where it is wanted", func() bool {
				return home.Stats().Sessions == 1 && spare.Stats().Sessions == 0
			})
		})
	}
}

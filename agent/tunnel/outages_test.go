package tunnel_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
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
	if _, err := io.CopyN(io.Discard, conn, 4<<20); err != nil {
		t.Fatal(err)
	}
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
	aborted := make(chan error, 1)
	w := start(t, options{app: func(conn *tls.Conn) {
		_, err := io.ReadFull(conn, make([]byte, 1))
		if err == nil {
			err = conn.NetConn().(interface{ Abort() error }).Abort()
		}
		aborted <- err
	}})
	w.connected(true)
	conn := w.mustVisit("notes.maya.localhost")
	if _, err := io.WriteString(conn, "x"); err != nil {
		t.Fatal(err)
	}
	if err := <-aborted; err != nil {
		t.Fatal(err)
	}
	programs.Eventually(t, "the relay has let go", func() bool { return w.relay.Stats().Visitors == 0 })
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the visitor is told %v", err)
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
	if err := echo(w.mustVisit("maya.localhost"), []byte("back again")); err != nil {
		t.Fatal(err)
	}
	if r.Stats().Visits != 1 {
		t.Errorf("%+v", r.Stats())
	}
}

func TestDrainLetsVisitsFinish(t *testing.T) {
	t.Parallel()
	w := start(t, options{relay: func(c *relay.Config) { c.Grace = wait }})
	w.connected(true)
	conn := w.mustVisit("maya.localhost")
	if err := echo(conn, []byte("before")); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() { w.stopRelay(); close(stopped) }()
	w.connected(false) // the agent was told to go elsewhere
	if err := echo(conn, []byte("while draining")); err != nil {
		t.Fatal(err)
	}
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
	other.tunnel, _ = tunnel.New(tunnel.Config{
		Relays:     func() []controlapi.Relay { return []controlapi.Relay{{Address: w.addr, ServerName: authHost}} },
		Credential: func() string { return credential }, RootCAs: testAuthority().Pool(),
	})
	other.run(options{app: func(conn *tls.Conn) { _, _ = io.WriteString(conn, "the newer"); _ = conn.CloseWrite() }})
	other.connected(true)
	programs.Eventually(t, "both are there", func() bool { return w.relay.Stats().Sessions == 2 })
	if got, err := io.ReadAll(w.mustVisit("maya.localhost")); string(got) != "the newer" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestTwoRelays(t *testing.T) {
	t.Parallel()
	second, secondAddr, stopSecond := startRelay(t, "127.0.0.1:0", nil, nil)
	first, firstAddr, _ := startRelay(t, "127.0.0.1:0", nil, nil)
	dead, _ := net.Listen("tcp", "127.0.0.1:0")
	deadAddr := dead.Addr().String()
	_ = dead.Close()
	w := start(t, options{tunnel: func(c *tunnel.Config) {
		c.Relays = func() []controlapi.Relay {
			return []controlapi.Relay{{Address: deadAddr, ServerName: authHost}, {Address: firstAddr, ServerName: authHost}, {Address: secondAddr, ServerName: authHost}}
		}
	}})
	programs.Eventually(t, "both living relays are connected", func() bool { return first.Stats().Sessions == 1 && second.Stats().Sessions == 1 })
	stopSecond()
	w.addr = firstAddr
	if err := echo(w.mustVisit("maya.localhost"), []byte("by the other one")); err != nil {
		t.Fatal(err)
	}
	if !w.tunnel.Connected() {
		t.Error("not connected with one relay left")
	}
}

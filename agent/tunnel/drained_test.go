package tunnel_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/relay"
	"porchlight/test/programs"
)

// named gives a relay the name of a node.
func named(node string) func(*relay.Config) {
	return func(c *relay.Config) { c.Node = node }
}

// listOf are the relays at these addresses.
func listOf(addresses ...string) func() []controlapi.Relay {
	var all []controlapi.Relay
	for _, addr := range addresses {
		all = append(all, controlapi.Relay{Address: addr, ServerName: authHost})
	}
	return func() []controlapi.Relay { return all }
}

// A relay that asks to be left while there is no other keeps the computer until there
// is one.
func TestDrainWithNowhereToGo(t *testing.T) {
	t.Parallel()
	other := programs.FreeAddress(t)
	w := start(t, options{relay: func(c *relay.Config) { c.Grace = wait }})
	w.anew(toRelays(w.addr, other), 0)
	w.connected(true)
	conn := w.mustVisit("maya.localhost")
	stopped := make(chan struct{})
	go func() { w.stopRelay(); close(stopped) }()
	programs.Eventually(t, "the agent stays", func() bool { return strings.Contains(w.log.String(), "until there is another") })
	if w.relay.Stats().Sessions != 1 || !w.tunnel.Connected() {
		t.Error("the agent left the only relay it had")
	}
	next, _, _ := startRelay(t, other, nil, named("next"))
	w.tunnel.Wake()
	programs.Eventually(t, "the agent has gone elsewhere", func() bool { return next.Stats().Sessions == 1 && w.relay.Stats().Sessions == 0 })
	if err := echo(conn, []byte("a visit under way goes on")); err != nil {
		t.Error(err)
	}
	_ = conn.Close()
	<-stopped
}

// A relay that asks to be left keeps the computer until the other has shown that it is
// there: a connection may have died, and nobody noticed.
func TestDrainBesideASilentRelay(t *testing.T) {
	t.Parallel()
	var silent atomic.Bool
	w := start(t, options{relay: func(c *relay.Config) { c.Grace = wait }})
	other, at, _ := startRelay(t, "127.0.0.1:0", nil, named("other"))
	cfg := toRelays(w.addr, at)
	cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil || addr != at {
			return conn, err
		}
		if silent.Load() {
			_ = conn.Close()
			return nil, errors.New("nothing comes from there")
		}
		return programs.HalfOpen{Conn: conn, Silent: &silent}, nil
	}
	w.anew(cfg, 0)
	programs.Eventually(t, "the agent is at both", func() bool { return w.relay.Stats().Sessions == 1 && other.Stats().Sessions == 1 })
	conn := w.mustVisit("maya.localhost") // for as long as it goes on, the relay does
	silent.Store(true)
	stopped := make(chan struct{})
	go func() { w.stopRelay(); close(stopped) }()
	programs.Eventually(t, "the silence is noticed", func() bool { return other.Stats().Sessions == 0 })
	if w.relay.Stats().Sessions != 1 || !w.tunnel.Connected() {
		t.Error("the agent left the only relay that was there")
	}
	silent.Store(false)
	w.tunnel.Wake()
	programs.Eventually(t, "the agent has gone elsewhere", func() bool { return other.Stats().Sessions == 1 && w.relay.Stats().Sessions == 0 })
	_ = conn.Close()
	<-stopped
}

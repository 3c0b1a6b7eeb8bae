package relay

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// crowd sends n visitors' hellos from one source, and returns once each has a place
// or was turned away.
func crowd(t *testing.T, r *Relay, addr, source string, n int) {
	t.Helper()
	hello := programs.ClientHello(t, &tls.Config{ServerName: "maya.localhost"})
	before := r.Stats()
	for range n {
		_, _ = dialFrom(t, source, addr).Write(hello)
	}
	programs.Eventually(t, "the crowd has come", func() bool {
		now := r.Stats()
		return now.Visitors-before.Visitors+int(now.Limited-before.Limited) == n
	})
}

// getsIn reports whether a visitor from source gets a place.
func getsIn(t *testing.T, r *Relay, addr, source string) bool {
	t.Helper()
	before := r.Stats().Visitors
	crowd(t, r, addr, source, 1)
	return r.Stats().Visitors == before+1
}

// Weakness: the share of a source was of the relay's limit and never of the
// computer's, so that two addresses without an account took every place of one
// computer. Attack: from two addresses, more visits than the computer may have,
// kept open. Checked: the owner comes in six of six times, from an address that was
// never seen before.
func TestTwoSourcesLeaveRoomAtAComputer(t *testing.T) {
	t.Parallel()
	r, addr := serveRelay(t, func(c *Config) {
		c.Limits.Visitors, c.Limits.VisitorsPerComputer, c.Limits.VisitorsPerSource = 512, 128, 64
		c.VisitorWait = longest
	}, nil)
	connectAgent(t, addr, "maya") // which opens no data connection: visitors wait
	for _, source := range []string{"127.0.0.10", "127.0.0.11"} {
		crowd(t, r, addr, source, 100)
	}
	if n := r.Stats().LimitedBy["visitors-per-computer"]; n == 0 {
		t.Errorf("nobody was turned away: %+v", r.Stats())
	}
	for i := range 6 {
		if !getsIn(t, r, addr, "127.0.0.3") {
			t.Errorf("the owner's visit %d was turned away", i)
		}
	}
}

// Weakness: many addresses, each within its share, take every place of a computer.
// Attack: as many as it needs. Checked: places are left for the addresses the
// computer let in before, and for those alone.
func TestPlacesAreKeptForThoseLetInLately(t *testing.T) {
	t.Parallel()
	r, addr := serveRelay(t, func(c *Config) {
		c.Limits.VisitorsPerComputer, c.VisitorWait = 40, longest
	}, nil)
	a := connectAgent(t, addr, "maya")
	programs.Must(t, tunnelwire.WriteFrame(a.control, tunnelwire.Frame{
		Type: tunnelwire.Known, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.2")},
	}))
	ping(t, a) // the frame before it has been read when it is answered
	for i := range 4 {
		crowd(t, r, addr, fmt.Sprintf("127.0.0.%d", 10+i), 20)
	}
	if getsIn(t, r, addr, "127.0.0.3") {
		t.Error("somebody unknown has a place that was kept for others")
	}
	if !getsIn(t, r, addr, "127.0.0.2") {
		t.Error("somebody known was turned away")
	}
}

func ping(t *testing.T, a *agent) {
	t.Helper()
	sent := time.Now().UnixNano()
	programs.Must(t, tunnelwire.WriteFrame(a.control, tunnelwire.Frame{Type: tunnelwire.Ping, Sent: sent}))
	timeout := time.After(longest)
	for {
		select {
		case f, ok := <-a.frames:
			if !ok {
				t.Fatal("the tunnel has ended")
			}
			if f.Type == tunnelwire.Pong {
				if f.Sent != sent {
					t.Errorf("the pong says that it answers the ping of %d, and not that of %d", f.Sent, sent)
				}
				return
			}
		case <-timeout:
			t.Fatal("no pong")
		}
	}
}

func TestKnownSourcesAreBoundedAndForgotten(t *testing.T) {
	t.Parallel()
	var k admitted
	source := func(i int) netip.Prefix {
		return sourceOf(&net.TCPAddr{IP: net.IPv4(198, 51, byte(i>>8), byte(i))})
	}
	now := time.Now()
	if k.spared(source(0), 100, now) != 0 {
		t.Error("places are kept though nobody is known")
	}
	for i := range 2 * tunnelwire.MaxAddresses {
		k.note(source(0), now) // stays
		k.note(source(i), now)
		now = now.Add(time.Second)
	}
	if k.count() != tunnelwire.MaxAddresses {
		t.Errorf("%d are known", k.count())
	}
	for i, want := range map[int]int{0: 0, 2*tunnelwire.MaxAddresses - 1: 0, 1: 25, 9999: 25} {
		if got := k.spared(source(i), 100, now); got != want {
			t.Errorf("%d of 100 places are not for source %d, want %d", got, i, want)
		}
	}
	if k.spared(source(9999), 100, now.Add(admittedFor)) != 0 {
		t.Error("places are kept for those of long ago")
	}
}

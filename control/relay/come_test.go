package relay

import (
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// arrives has a visitor come by addr and be answered, and both leave again.
func (a *agent) arrives(addr string) {
	a.t.Helper()
	visitor, data, hello := a.visitedAt(addr)
	receives(a.t, data, string(hello))
	exchange(a.t, data, visitor, "an answer")
	_, _ = visitor.Close(), data.Close()
}

// asked is where the agent is asked to come next; nil when it has to be asked nothing more.
func (a *agent) asked() tunnelwire.Frame {
	a.t.Helper()
	after := time.After(longest)
	for {
		select {
		case f, ok := <-a.frames:
			if !ok {
				a.t.Fatal("the tunnel has ended")
			}
			if f.Type == tunnelwire.Come {
				return f
			}
		case <-after:
			a.t.Fatal("the agent is not asked to come")
		}
	}
}

// Weakness: a computer whose visitors keep landing on a node without its tunnel had each of
// them cross two nodes for ever. Checked: with the third visitor whom that node passes on
// its agent is asked to come there, once; an agent that does not is asked again after a minute, and who has an older one goes on being
// passed on.
func TestAgentIsAskedToCome(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	store := sharedStore(t, nil)
	one := serveNode(t, store, "one", nil)
	two := serveNode(t, store, "two", func(c *Config) { c.Now = now.Now })
	one.sees(t, 2)
	two.sees(t, 2)
	a := connectAgent(t, two.addr, "maya") // which never comes, like one of before
	for came := range 5 {
		now.advance(time.Millisecond)
		a.arrives(one.addr)
		counted := func() bool {
			two.routes.mu.Lock()
			defer two.routes.mu.Unlock()
			p := two.routes.byID["maya"].passing["one"]
			return p != nil && p.visits[comeAfter-1].Equal(now.Now())
		}
		programs.Eventually(t, "the visitor is counted", counted)
		if came == comeAfter-1 {
			if f := a.asked(); f.Relay != "one.example:443" {
				t.Errorf("asked to come to %q", f.Relay)
			}
		}
	}
	if s := one.Stats(); two.Stats().AskedToCome != 1 || s.PassedOn != 5 {
		t.Errorf("asked %d times, %d were passed on", two.Stats().AskedToCome, s.PassedOn)
	}
	now.advance(comeAgainAfter)
	a = connectAgent(t, two.addr, "maya") // the tickets of before are too old
	a.arrives(one.addr)
	a.asked()
	// Those who come to the tunnel's own node are no reason.
	for range comeAfter {
		a.arrives(two.addr)
	}
	programs.Eventually(t, "the visits are counted", func() bool { return two.Stats().Visits == 9 })
	if n := two.Stats().AskedToCome; n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// Visitors count for as long as an agent that came for them would stay, each node for itself.
func TestPassedOften(t *testing.T) {
	t.Parallel()
	now := time.Now()
	routes, c := newRoutes(Limits{}.WithDefaults()), &computer{}
	comes := func(node string, after time.Duration, want bool) {
		t.Helper()
		now = now.Add(after)
		if got := routes.passedOften(c, node, now); got != want {
			t.Errorf("by %s: %v", node, got)
		}
	}
	comes("one", 0, false)
	comes("two", 0, false)
	comes("one", 0, false)
	comes("two", 0, false)
	comes("one", tunnelwire.AsleepAfter, false) // those of before do not count
	comes("one", tunnelwire.AsleepAfter-2*time.Second, false)
	comes("one", time.Second, true) // the third within so long, whenever the first of all came
	comes("two", 0, false)
	comes("one", 2*time.Second, false) // asked a moment ago, also when the first has lapsed
	comes("one", time.Second, false)
	comes("one", time.Second, false)
	comes("one", comeAgainAfter-4*time.Second, true)
	now = now.Add(tunnelwire.AsleepAfter - time.Second)
	comes("three", 0, false)
	if len(c.passing) != 2 {
		t.Errorf("%d nodes are remembered", len(c.passing))
	}
}

// Attack: strangers visit each computer of a cluster by one node, whose agents all come.
// Checked: they leave room there for the computers that have no other node, and leave
// themselves where that is not enough, first the one whose own computer comes to stay; but
// none leaves where that is of no use.
func TestThoseWhoComeLeaveRoom(t *testing.T) {
	t.Parallel()
	routes := newRoutes(Limits{Tunnels: 8}.For(1 << 16))
	enters := func(s *session) (left []*session, ok bool) {
		s.host = s.computer.ID
		left, err := routes.add(s, 0)
		return left, err == nil
	}
	named := func(name string) controlapi.Computer { return controlapi.Computer{ID: name} }
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for i, name := range names {
		if _, ok := enters(&session{computer: named(name), instance: "extra", extra: true}); ok != (i < 6) {
			t.Errorf("extra one %d is let in: %v", i, ok)
		}
	}
	for i, name := range []string{"home", "another", "d", "one", "more", "and", "more of", "them"} {
		left, ok := enters(&session{computer: named(name), instance: "slot"})
		if !ok || len(left) != min(1, i/2) || name == "d" && left[0].computer.ID != "d" {
			t.Errorf("%s is let in: %v, and %d leave", name, ok, len(left))
		}
		for _, old := range left {
			if routes.extras[old] || old.computer.ID != "d" && routes.holds(old.host) {
				t.Errorf("%s is still there", old.host)
			}
		}
	}
	if _, ok := enters(&session{computer: named("too many")}); ok || routes.tunnels != 8 || len(routes.extras) != 0 {
		t.Errorf("what is left is not for others: %d tunnels, %d extra", routes.tunnels, len(routes.extras))
	}
}

// A computer that comes to stay where there is no room is welcomed, and the one that leaves
// for it is told to come back later, if it must.
func TestThoseWhoComeAreToldToLeave(t *testing.T) {
	t.Parallel()
	_, addr := serveRelay(t, func(c *Config) { c.Limits.Tunnels = 2 }, nil)
	extra := connectAgentSaying(t, dial(t, addr), addr, tunnelwire.Frame{Credential: "credential-of-kim", Instance: "kim", Extra: true})
	connectAgent(t, addr, "maya")
	connectAgent(t, addr, "noor")
	for f := range extra.frames {
		if f.Type == tunnelwire.Refused && f.Code == tunnelwire.CodeUnavailable && f.RetryAfter > 0 {
			return
		}
	}
	t.Error("it was not told why")
}

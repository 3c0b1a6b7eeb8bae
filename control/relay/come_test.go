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
// its agent is asked to come there, once, whether they came inside TLS or by a voucher; an
// agent that does not is asked again after a minute, and who has an older one goes on being
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
		a.arrives(one.addr)
		counted := func() bool {
			two.routes.mu.Lock()
			defer two.routes.mu.Unlock()
			return two.routes.byID["maya"].passing["one"].visitors == came+1
		}
		programs.Eventually(t, "the visitor is counted", counted)
		one.holdsKeyOf(t, two)
		if came == comeAfter-1 {
			if f := a.asked(); f.Relay != "one.example:443" {
				t.Errorf("asked to come to %q", f.Relay)
			}
		}
	}
	if s := one.Stats(); two.Stats().AskedToCome != 1 || s.PassedOn != 5 || s.PassedPlain != 4 {
		t.Errorf("asked %d times, %d were passed on, %d without TLS", two.Stats().AskedToCome, s.PassedOn, s.PassedPlain)
	}
	now.advance(comeAgainAfter)
	a.arrives(one.addr)
	a.asked()
	// Those who come to the tunnel's own node are no reason.
	for range comeAfter {
		a.arrives(two.addr)
	}
	if s := two.Stats(); s.AskedToCome != 2 || s.Visits != 9 {
		t.Errorf("asked %d times after %d visits", s.AskedToCome, s.Visits)
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
	if len(c.passing) != 1 {
		t.Errorf("%d nodes are remembered", len(c.passing))
	}
	comes("one", 0, false)
	comes("one", tunnelwire.AsleepAfter-time.Second, true)
	comes("two", 0, false)
}

// An agent is not asked to come where it would not be let in, or to where it is.
func TestWhereAnAgentComes(t *testing.T) {
	t.Parallel()
	own := controlapi.Relay{Address: "own.example:443"}
	d := &directory{self: nodeRow{Node: "own", Relay: own}, nodes: []nodeRow{
		{Node: "balanced", Relay: own}, {Node: "leaving", Relay: controlapi.Relay{Address: "a"}, Draining: true},
		{Node: "other", Relay: controlapi.Relay{Address: "b"}}, {Node: "own", Relay: own},
	}}
	for node, want := range map[string]string{"balanced": "", "leaving": "", "other": "b", "own": "", "gone": ""} {
		if at, ok := d.reachedAt(node); ok != (want != "") || ok && at != want {
			t.Errorf("%s: %q, %v", node, at, ok)
		}
	}
}

// Attack: strangers visit each computer of a cluster by one node, whose agents all come.
// Checked: they leave room there for the computers that have no other node.
func TestThoseWhoComeLeaveRoom(t *testing.T) {
	t.Parallel()
	routes := newRoutes(Limits{Tunnels: 8}.WithDefaults())
	enters := func(name string, extra bool) bool {
		_, err := routes.add(&session{computer: controlapi.Computer{ID: name}, host: name, extra: extra, syncs: true}, 0)
		return err == nil
	}
	for i := range 8 {
		if got := enters(string(rune('a'+i)), true); got != (i < 6) {
			t.Errorf("extra one %d is let in: %v", i, got)
		}
	}
	if !enters("home", false) || !enters("of its own", false) || enters("one too many", false) {
		t.Error("what is left is not for others")
	}
}

package control

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
	"porchlight/test/resolver"
)

// Weakness: a proven name is routed for ever where nobody looks any more: the control plane
// was away, or its looks fail. Checked: it is not once its next look is a day overdue, and its
// computer hears that it was not all the time, when it is proven again.
func TestAProvenDomainEndsWithoutLooks(t *testing.T) {
	t.Parallel()
	b, z, maya, _ := domainBench(t, "memory:")
	z.put(b.claim(maya, ownName))
	held := b.look(maya, ownName).Held
	b.clock.Add(lookDaily + overdueFor - time.Minute)
	b.wantLeads("nobody looked", ownName, "notes.maya.porch.example")
	b.clock.Add(time.Minute)
	b.wantLeads("nobody looked for too long", ownName, "")
	before := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), maya.Computer.ID))
	programs.Must(t, b.Domains.lookAtDue(t.Context()))
	b.wantLeads("looked at again", ownName, "notes.maya.porch.example")
	after := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), maya.Computer.ID))
	if after.Version == before.Version || !after.Domains[0].Held.After(held) {
		t.Errorf("its computer is told %+v, held since %v before", after.Domains, held)
	}
}

// Weakness: a stranger names hosts by the thousand, and each takes the place of a name that is
// known, which then costs a look into the store each time. Checked: it stays known, and so many
// of the others are and no more.
func TestJunkNamesTakeNoPlace(t *testing.T) {
	t.Parallel()
	b, z, maya, _ := domainBench(t, "memory:")
	z.put(b.claim(maya, ownName))
	b.look(maya, ownName)
	b.wantLeads("proven", ownName, "notes.maya.porch.example")
	routes := &b.Domains.routes
	for i := range maxRoutes + 100 {
		routes.keep(fmt.Sprintf("x%d.evil.test", i), knownRoute{at: b.clock.Now()})
	}
	if _, found := routes.find(ownName); !found || len(routes.nowhere) != maxRoutes {
		t.Errorf("it is known: %v, and %d others are", found, len(routes.nowhere))
	}
	routes.keep(ownName, knownRoute{at: b.clock.Now()}) // it leads nowhere from now on
	if k, found := routes.find(ownName); !found || k.Host != "" || len(routes.known) != 0 {
		t.Errorf("it is known as %+v", k)
	}
}

// Weakness: what the store cannot say of one computer keeps all others from being looked at.
// Checked: they are.
func TestOneLookThatFailsEndsNoOther(t *testing.T) {
	t.Parallel()
	b, z, maya, anna := domainBench(t, "memory:")
	b.claim(anna, "notes.anna.test")
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("n%d.maya.test", i))
		z.put(b.claim(maya, names[i]))
	}
	programs.Must(t, b.store.Update(t.Context(), func(tx kv.Tx) error { return tx.Put(keyComputerDomains(anna.Computer.ID), []byte("{"), 0) }))
	if err := b.Domains.lookAtDue(t.Context()); err == nil {
		t.Error("a row that cannot be read is no error")
	}
	for _, name := range names {
		b.wantLeads("beside one that fails", name, "notes.maya.porch.example")
	}
}

// Weakness: who lost a name by mistake waits a day until it is looked at again. Checked: it is
// soon; and what happens to names is written down with them.
func TestWhoLosesADomainIsLookedAtSoon(t *testing.T) {
	t.Parallel()
	var log *audit.Log
	z := newZone(t)
	b := newBench(t, auditing(&log), func(c *Config) {
		c.Resolvers, c.Naming = []string{z.a.Addr(), z.b.Addr()}, Naming{Domain: "porch.example", AuthHost: "control.porch.example"}
	})
	maya, anna := b.owner(), ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "anna@example.com", "anna"))
	for _, c := range []controlapi.Enrolled{maya, anna} {
		b.apps(c, "app1")
	}
	hers, theirs := b.claim(maya, ownName), b.claim(anna, ownName)
	z.put(hers)
	b.look(maya, ownName)
	z.put(theirs)
	b.look(anna, ownName)
	b.wantLeads("taken over", ownName, "notes.anna.porch.example")
	z.put(hers)
	b.look(anna, ownName)
	b.wantLeads("it leads back", ownName, "")
	b.clock.Add(firstLook)
	programs.Must(t, b.Domains.lookAtDue(t.Context()))
	b.wantLeads("a moment later", ownName, "notes.maya.porch.example")

	programs.Must(t, log.Flush(t.Context()))
	var kinds []string
	programs.Must(t, audit.List(t.Context(), b.store, func(r audit.Row) error {
		if r.What == ownName+" at "+maya.Computer.ID {
			kinds = append(kinds, r.Kind)
		}
		return nil
	}))
	if want := []string{"domain-added", "domain-proven", "domain-ended", "domain-proven"}; !slices.Equal(kinds, want) {
		t.Errorf("written down are %v, want %v", kinds, want)
	}
}

// A thousand domains of fifty computers come due at once: no more are looked up at a time than
// may be, each is once and has its next look, and where names lead is read all the time.
func TestAThousandDomainsAtOnce(t *testing.T) {
	t.Parallel()
	b, z, _, _ := domainBench(t, "memory:")
	const computers = 50
	var all []string
	for i := range computers {
		short := fmt.Sprintf("c%d", i)
		c := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), short+"@example.com", short))
		b.apps(c, "app1")
		for k := range controlapi.MaxDomains {
			name := fmt.Sprintf("d%d.%s.test", k, short)
			z.put(b.claim(c, name))
			all = append(all, name)
		}
	}
	z.both(func(r *resolver.Resolver) { r.Slow(time.Millisecond) })
	looked := make(chan error, 1)
	go func() { looked <- b.Domains.lookAtDue(t.Context()) }()
	for i := range 200 { // while they are under way
		ok[DomainRoute](t)(b.Domains.Route(t.Context(), fmt.Sprintf("x%d.evil.test", i)))
	}
	programs.Must(t, <-looked)
	for _, name := range all {
		if route := ok[DomainRoute](t)(b.Domains.Route(t.Context(), name)); !route.Proven {
			t.Fatalf("%s leads to %+v", name, route)
		}
	}
	// TXT, CNAME, and CAA at the name and up from it: at most so many for each.
	z.both(func(r *resolver.Resolver) {
		if most := r.Most(); r.Asked() > 8*len(all) || most > 2*looksAtOnce {
			t.Errorf("%d questions for %d names, %d at once", r.Asked(), len(all), most)
		}
	})
	if due := ok[[]dueDomain](t)(b.Domains.due(t.Context())); len(due) != 0 || b.rows("domain-due/") != len(all) {
		t.Errorf("%d are due, and %d have a next look", len(due), b.rows("domain-due/"))
	}
}

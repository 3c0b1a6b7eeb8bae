package peers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

const (
	// lookupWait bounds a look for nodes that strangers cause by naming hosts.
	lookupWait = time.Second
	// unreachedFor is how long a node that did not answer is not tried.
	unreachedFor = 2 * time.Second
)

// findings are the other nodes that may have a tunnel, the likeliest first. They are
// sure where these nodes have just said so, and nobody was left out: then nodes that are
// not among them have none. That there are none at all is sure only where
// it was just read who is there, too.
type findings struct {
	nodes []nodeRow
	sure  bool
	more  func() []nodeRow // asks who else has it; nil where nobody else may
}

// each yields the nodes to offer a visitor to, so many at most. Who else has the tunnel
// is asked only when none of those named took the visitor.
func (f findings) each(most int) iter.Seq[nodeRow] {
	return func(yield func(nodeRow) bool) {
		named := f.nodes[:min(len(f.nodes), most)]
		for _, n := range named {
			if !yield(n) {
				return
			}
		}
		if f.more == nil || len(named) == most {
			return
		}
		others := slices.DeleteFunc(f.more(), func(n nodeRow) bool { return slices.Contains(named, n) })
		for _, n := range others[:min(len(others), most-len(named))] {
			if !yield(n) {
				return
			}
		}
	}
}

// nowhere is what becomes of a visitor for whom there is no node to ask.
func (f findings) nowhere() error {
	if f.sure {
		return ErrUnknownHost
	}
	return ErrNoAnswer
}

// find names the other nodes where a tunnel for a server name is, the latest first. Those
// who have it say so themselves. Where nobody does, all are to be asked but those that are
// known to be without it: the others were not heard, were too busy to answer, or came after
// the question. It goes by what it last knew where the store cannot be asked who is there.
func (p *Peers) find(ctx context.Context, serverName string) findings {
	if !strings.HasSuffix(serverName, p.domain) {
		return findings{sure: true}
	}
	found, without := p.ask(ctx, serverName)
	if len(found.nodes) > 0 {
		return found
	}
	known := p.lookAnew(ctx)
	found = p.lastKnown(serverName)
	found.nodes = slices.DeleteFunc(found.nodes, func(n nodeRow) bool { return slices.Contains(without, n.Run) })
	found.sure = known && len(found.nodes) == 0
	return p.reached(found)
}

const (
	// freshFor is how old the view of the nodes may be where nobody says to have a tunnel.
	freshFor = 200 * time.Millisecond
	// anewWait is how long a visitor waits for a newer one: a near database answers in a few
	// milliseconds, and one that does not is no reason to keep waiting who may be known.
	anewWait = 300 * time.Millisecond
)

// lookAnew reads who is there, because a node that came just now may have the tunnel that
// nobody else has, and says whether it is known: read no more than freshFor before it was
// called. Those who ask together cause one read, and strangers who name hosts none within
// freshFor of the last. The store may outlast the time it is given, so the read is left to
// itself after anewWait, and nobody waits for one that is overdue.
func (p *Peers) lookAnew(ctx context.Context) (known bool) {
	p.mu.Lock()
	called := p.cfg.Now()
	known = called.Sub(p.seenAt) < freshFor
	due := !known && !p.storeIsAway() && called.Sub(p.anewAt) >= freshFor
	overdue := !p.anewSince.IsZero() && called.Sub(p.anewSince) >= anewWait
	p.mu.Unlock()
	if !due || overdue {
		return known
	}
	looked := p.flight.DoChan("", func() (any, error) { // no server name is empty
		p.mu.Lock()
		p.anewSince = p.cfg.Now()
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(kv.WithTurn(context.WithoutCancel(ctx), "lookups"), lookupWait)
		defer cancel()
		err := p.look(ctx)
		if err != nil {
			p.cfg.Log.Warn("looking for new relays failed; those known count", "err", err)
			p.lookupFailed(err) // so that not everybody waits for it
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.anewSince = time.Time{}
		if err != nil {
			p.anewAt = p.cfg.Now()
		}
		return nil, nil
	})
	select {
	case <-looked:
	case <-time.After(anewWait):
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return called.Sub(p.seenAt) < freshFor // not by how late this goes on
}

// ask has the nodes that hold a tunnel say so. The first that does is enough, so that no
// visitor waits for a second answer that most computers' nodes have none of; where it
// goes away itself, or could not be reached a moment ago, all of them are. Nobody may
// answer: without are then the runs that surely do not hold it.
func (p *Peers) ask(ctx context.Context, serverName string) (found findings, without []string) {
	p.mu.Lock()
	most := min(len(p.others()), peersTried)
	p.mu.Unlock()
	nodes, somebody, without := p.saying(ctx, serverName, min(most, 1))
	found = findings{nodes: nodes, sure: true}
	all := func() []nodeRow { nodes, _, _ := p.saying(ctx, serverName, most); return nodes }
	switch {
	case most < 2 || !somebody:
	case len(nodes) == 0 || nodes[0].Draining:
		found.nodes = all()
	default:
		found.more = all
	}
	if len(found.nodes) > 0 {
		p.heldBy(serverName, found.nodes[0])
	}
	return found, without
}

// Held says whether another node says to have the tunnel of a root host, and whether that is
// sure: of one that is not heard nobody knows.
func (p *Peers) Held(ctx context.Context, host string) (held, sure bool) {
	runs, without := p.cfg.Holders(ctx, host, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	heard := !slices.ContainsFunc(p.others(), func(n nodeRow) bool { return !slices.Contains(without, n.Run) })
	return len(runs) > 0, len(runs) > 0 || heard
}

// saying are the nodes that say to hold a tunnel, without those that could not be
// reached a moment ago; somebody says whether any node did.
func (p *Peers) saying(ctx context.Context, serverName string, most int) (nodes []nodeRow, somebody bool, without []string) {
	runs, without := p.cfg.Holders(ctx, p.hostOf(serverName), most)
	p.mu.Lock()
	others := p.others()
	p.mu.Unlock()
	for _, run := range runs {
		if i := slices.IndexFunc(others, func(n nodeRow) bool { return n.Run == run }); i >= 0 {
			nodes = append(nodes, others[i])
		}
	}
	goes := map[bool]int{true: 1} // by Draining: those that go away come last
	slices.SortStableFunc(nodes, func(a, b nodeRow) int { return goes[a.Draining] - goes[b.Draining] })
	return p.reached(findings{nodes: nodes}).nodes, len(runs) > 0, without
}

// Node is a node that is there.
type Node struct {
	Name, Version, Address string // Address is where agents connect
	Draining, This         bool
	Public                 string // IP addresses for visitors, with spaces between them
}

// Nodes are the living nodes as they were read last, this one included, by name.
func (p *Peers) Nodes() []Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Node, len(p.nodes))
	for i, n := range p.nodes {
		out[i] = Node{n.Node, n.Version, n.Relay.Address, n.Draining, n.Node == p.self.Node, n.Public}
	}
	return out
}

// others are the living nodes but this one. mu is held.
func (p *Peers) others() []nodeRow {
	return slices.DeleteFunc(slices.Clone(p.nodes), func(n nodeRow) bool { return n.Node == p.self.Node })
}

// reached drops the nodes that could not be reached a moment ago.
func (p *Peers) reached(f findings) findings {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes := slices.DeleteFunc(slices.Clone(f.nodes), func(n nodeRow) bool { return p.cfg.Now().Before(p.unreached[n.Run]) })
	return findings{nodes: nodes, sure: f.sure && len(nodes) == len(f.nodes)}
}

// unreachable notes that a node did not answer: for a moment it is not tried.
func (p *Peers) unreachable(n nodeRow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unreached[n.Run] = p.cfg.Now().Add(unreachedFor)
}

// relaysMost bounds what RelaysFor answers.
const relaysMost = 8

// RelaysFor are the relays a computer's agent should connect to, the first two, and the
// spare ones: the same whichever node is asked, and spread over the nodes.
func (p *Peers) RelaysFor(computerID string) []controlapi.Relay {
	p.mu.Lock()
	nodes := slices.DeleteFunc(slices.Clone(p.nodes), func(n nodeRow) bool { return n.Draining })
	p.mu.Unlock()
	if len(nodes) == 0 {
		return []controlapi.Relay{p.self.Relay}
	}
	slices.SortFunc(nodes, func(a, b nodeRow) int {
		return cmp.Compare(affinity(computerID, b.Node), affinity(computerID, a.Node))
	})
	var relays []controlapi.Relay
	for _, n := range nodes {
		if !slices.Contains(relays, n.Relay) {
			relays = append(relays, n.Relay)
		}
		if len(relays) == relaysMost {
			break
		}
	}
	return relays
}

// affinity orders nodes differently for each computer.
func affinity(computerID, node string) uint64 {
	sum := sha256.Sum256([]byte(computerID + "\x00" + node))
	return binary.BigEndian.Uint64(sum[:])
}

// ReachedAt is where agents reach a node, if that leads to it and not to this one, and it
// stays.
func (p *Peers) ReachedAt(node string) (address string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.others() {
		if n.Node == node {
			return n.Relay.Address, !n.Draining && n.Relay != p.self.Relay
		}
	}
	return "", false
}

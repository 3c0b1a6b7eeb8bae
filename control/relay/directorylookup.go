package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// Bounds of the lookups, which strangers cause by naming hosts.
const (
	lookupsAtOnce = 16
	lookupWait    = time.Second
	foundFor      = 2 * time.Second
	missingFor    = time.Second
	cacheMost     = 4096
)

type cached struct {
	nodes []nodeRow
	until time.Time
}

// findings are the other nodes that may have a tunnel, the likeliest first. They are
// sure where these nodes or the store have just said so, and nobody was left out: then
// nodes that are not among them have none. That there are none at all is sure only where
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
		return errUnknownHost
	}
	return errNoConnection
}

// round bounds how long nodes are asked for one visitor, where the store has not named
// them.
func (f findings) round(life context.Context) (context.Context, context.CancelFunc) {
	if f.sure {
		return life, func() {}
	}
	return context.WithTimeout(life, askedFor)
}

// find names the other nodes where a tunnel for a server name is, the latest
// first. Those who have it say so themselves; where nobody does, the store is looked
// into while rows are needed. It answers from memory where it can, and goes by what it
// last knew where the store cannot be asked. The error is an overLimit: too many ask.
func (d *directory) find(ctx context.Context, serverName string) (findings, error) {
	if !strings.HasSuffix(serverName, d.domain) {
		return findings{sure: true}, nil
	}
	found, without := d.ask(ctx, serverName)
	if len(found.nodes) > 0 {
		return found, nil
	}
	d.mu.Lock()
	entry, ok := d.cache[serverName]
	away, rows, others := d.storeIsAway(), d.rows, d.others()
	d.mu.Unlock()
	if rows { // and then these are asked by rows
		for _, n := range others {
			if n.News == "" {
				without = append(without, n.Run)
			}
		}
	}
	switch {
	case !rows:
		return d.withoutRows(ctx, serverName, without), nil
	case ok && d.now().Before(entry.until):
		return d.byRows(ctx, serverName, entry.nodes, without), nil
	case away:
		return d.reached(d.lastKnown(serverName)), nil
	}
	// Strangers cause it: all lookups together have one turn.
	ctx, cancel := context.WithTimeout(kv.WithTurn(ctx, "lookups"), lookupWait)
	defer cancel()
	select {
	case d.lookups <- struct{}{}:
		defer func() { <-d.lookups }()
	case <-ctx.Done():
		return findings{}, overLimit(limitLookups)
	}
	read, err, _ := d.flight.Do(serverName, func() (any, error) {
		nodes, err := d.lookUp(ctx, serverName)
		if err != nil {
			d.log.Warn("looking for a tunnel failed; what was known last counts", "err", err)
			d.lookupFailed(err)
		}
		return nodes, err
	})
	if err != nil {
		return d.reached(d.lastKnown(serverName)), nil
	}
	return d.byRows(ctx, serverName, read.([]nodeRow), without), nil
}

// ask has the nodes that hold a tunnel say so. The first that does is enough, so that no
// visitor waits for a second answer that most computers' nodes have none of; where it
// goes away itself, or could not be reached a moment ago, all of them are. Nobody may
// answer: without are then the runs that surely do not hold it.
func (d *directory) ask(ctx context.Context, serverName string) (found findings, without []string) {
	if d.holders == nil {
		return findings{}, nil
	}
	d.mu.Lock()
	most := min(len(d.others()), peersTried)
	d.mu.Unlock()
	nodes, somebody, without := d.saying(ctx, serverName, min(most, 1))
	found = findings{nodes: nodes, sure: true}
	all := func() []nodeRow { nodes, _, _ := d.saying(ctx, serverName, most); return nodes }
	switch {
	case most < 2 || !somebody:
	case len(nodes) == 0 || nodes[0].Draining:
		found.nodes = all()
	default:
		found.more = all
	}
	if len(found.nodes) > 0 {
		d.heldBy(serverName, found.nodes[0])
	}
	return found, without
}

// saying are the nodes that say to hold a tunnel, without those that could not be
// reached a moment ago; somebody says whether any node did.
func (d *directory) saying(ctx context.Context, serverName string, most int) (nodes []nodeRow, somebody bool, without []string) {
	runs, without := d.holders(ctx, d.hostOf(serverName), most)
	d.mu.Lock()
	others := d.others()
	d.mu.Unlock()
	var places []place
	for _, run := range runs {
		if i := slices.IndexFunc(others, func(n nodeRow) bool { return n.Run == run }); i >= 0 {
			places = append(places, place{nodeRow: others[i]})
		}
	}
	slices.SortStableFunc(places, likelier)
	return d.reached(findings{nodes: nodesOf(places)}).nodes, len(runs) > 0, without
}

// others are the living nodes but this one. mu is held.
func (d *directory) others() []nodeRow {
	return slices.DeleteFunc(slices.Clone(d.nodes), func(n nodeRow) bool { return n.Node == d.self.Node })
}

type place struct {
	nodeRow
	since time.Time
}

// lookUp reads which of the living nodes has the host of a server name: the name
// itself, or what follows its first label.
func (d *directory) lookUp(ctx context.Context, serverName string) ([]nodeRow, error) {
	d.mu.Lock()
	others := d.others()
	d.mu.Unlock()
	var places []place
	_, parent, _ := strings.Cut(serverName, ".")
	var keys []string
	for _, n := range others {
		keys = append(keys, keyTunnels+serverName+"/"+n.Node, keyTunnels+parent+"/"+n.Node)
	}
	if len(keys) > 0 {
		err := d.store.View(ctx, func(tx kv.Tx) error {
			places = nil
			var values [][]byte
			for some := range slices.Chunk(keys, kv.MaxKeys) {
				found, err := tx.GetAll(some...)
				if err != nil {
					return err
				}
				values = append(values, found...)
			}
			for i, value := range values {
				var row tunnelRow
				if value == nil {
					continue
				}
				if err := json.Unmarshal(value, &row); err != nil {
					return fmt.Errorf("the row %s: %w", keys[i], err)
				}
				if n := others[i/2]; row.Run == n.Run {
					places = append(places, place{n, row.Since})
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(places, likelier)
	nodes := nodesOf(places)
	d.learn(serverName, nodes)
	return nodes, nil
}

func nodesOf(places []place) []nodeRow {
	nodes := make([]nodeRow, len(places))
	for i, p := range places {
		nodes[i] = p.nodeRow
	}
	return nodes
}

// likelier orders the latest first, and those that go away last.
func likelier(a, b place) int {
	switch {
	case a.Draining == b.Draining:
		return b.since.Compare(a.since)
	case a.Draining:
		return 1
	}
	return -1
}

// reached drops the nodes that could not be reached a moment ago.
func (d *directory) reached(f findings) findings {
	d.mu.Lock()
	defer d.mu.Unlock()
	nodes := slices.DeleteFunc(slices.Clone(f.nodes), func(n nodeRow) bool { return d.now().Before(d.unreached[n.Run]) })
	return findings{nodes: nodes, sure: f.sure && len(nodes) == len(f.nodes)}
}

// unreachable notes that a node did not answer: for a moment it is not tried.
func (d *directory) unreachable(n nodeRow) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unreached[n.Run] = d.now().Add(foundFor)
}

// wrong notes that what was found for a server name is so no longer.
func (d *directory) wrong(serverName string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.cache, serverName)
}

// relaysMost bounds what relaysFor answers.
const relaysMost = 8

// relaysFor are the relays a computer's agent should connect to, the first two, and the
// spare ones: the same whichever node is asked, and spread over the nodes.
func (d *directory) relaysFor(computerID string) []controlapi.Relay {
	d.mu.Lock()
	nodes := slices.DeleteFunc(slices.Clone(d.nodes), func(n nodeRow) bool { return n.Draining })
	d.mu.Unlock()
	if len(nodes) == 0 {
		return []controlapi.Relay{d.self.Relay}
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

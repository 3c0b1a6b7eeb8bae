package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// Bounds of the lookups, which strangers cause by naming hosts.
const (
	lookupsAtOnce = 16
	lookupWait    = 2 * time.Second
	foundFor      = 2 * time.Second
	missingFor    = time.Second
	cacheMost     = 4096
)

type cached struct {
	nodes []nodeRow
	until time.Time
}

// find names the other nodes where a tunnel for a server name is, the latest
// first. It answers from memory where it can; an overLimit says that too many ask.
func (d *directory) find(ctx context.Context, serverName string) ([]nodeRow, error) {
	if !strings.HasSuffix(serverName, d.domain) {
		return nil, nil
	}
	d.mu.Lock()
	entry, ok := d.cache[serverName]
	d.mu.Unlock()
	if ok && d.now().Before(entry.until) {
		return d.reached(entry.nodes), nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWait)
	defer cancel()
	select {
	case d.lookups <- struct{}{}:
		defer func() { <-d.lookups }()
	case <-ctx.Done():
		return nil, overLimit(limitLookups)
	}
	found, err, _ := d.flight.Do(serverName, func() (any, error) { return d.lookUp(ctx, serverName) })
	if err != nil {
		return nil, err
	}
	return d.reached(found.([]nodeRow)), nil
}

// lookUp reads which of the living nodes has the host of a server name: the name
// itself, or what follows its first label.
func (d *directory) lookUp(ctx context.Context, serverName string) ([]nodeRow, error) {
	d.mu.Lock()
	others := slices.DeleteFunc(slices.Clone(d.nodes), func(n nodeRow) bool { return n.Node == d.self.Node })
	current := d.now().Sub(d.seenAt) < lease
	d.mu.Unlock()
	if !current {
		others = nil // the store is away, and so is what we know
	}
	type place struct {
		nodeRow
		since time.Time
	}
	var places []place
	_, parent, _ := strings.Cut(serverName, ".")
	var keys []string
	for _, n := range others {
		keys = append(keys, keyTunnels+serverName+"/"+n.Node, keyTunnels+parent+"/"+n.Node)
	}
	if len(keys) > 0 {
		err := d.store.View(ctx, func(tx kv.Tx) error {
			places = nil
			values, err := tx.GetAll(keys...)
			if err != nil {
				return err
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
	slices.SortStableFunc(places, func(a, b place) int {
		if a.Draining != b.Draining {
			if a.Draining {
				return 1
			}
			return -1
		}
		return b.since.Compare(a.since)
	})
	nodes := make([]nodeRow, len(places))
	for i, p := range places {
		nodes[i] = p.nodeRow
	}
	entry := cached{nodes, d.now().Add(foundFor)}
	if len(nodes) == 0 {
		entry.until = d.now().Add(missingFor)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.cache) >= cacheMost {
		clear(d.cache)
	}
	d.cache[serverName] = entry
	return nodes, nil
}

// reached drops the nodes that could not be reached a moment ago.
func (d *directory) reached(nodes []nodeRow) []nodeRow {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(nodes), func(n nodeRow) bool { return d.now().Before(d.unreached[n.Run]) })
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

// relaysFor are the relays a computer's agent should connect to, up to two, the
// same whichever node is asked, and spread over the nodes.
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
		if len(relays) == 2 {
			break
		}
	}
	return relays
}

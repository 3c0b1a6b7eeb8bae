package relay

import (
	"context"
	"slices"
	"time"

	"porchlight/control/kv"
)

// Nodes that have news say themselves which tunnels they hold, and nothing of that is in
// the store. While a node that lives is not heard for long, as when no port for news is
// open between two of them, they write and read rows, too. They stop by themselves; rows
// that are left run out.

// unheardFor is how long a node that lives is not heard before rows are needed for it:
// one that was killed is not taken for alive as long.
const unheardFor = lease + lease/3

// decideRows is the one place where it is decided whether rows are needed, at every look
// for other nodes. mu is held.
func (d *directory) decideRows() {
	if d.holders == nil || d.unheardBy == nil {
		return // this node has no news itself
	}
	unheard := d.unheardBy(unheardFor)
	i := slices.IndexFunc(d.nodes, func(n nodeRow) bool {
		return n.Node != d.self.Node && (n.News == "" || slices.Contains(unheard, n.Run))
	})
	switch needed := i >= 0; {
	case needed && !d.rows:
		d.log.Info("a relay of this service is not heard: where tunnels are is told by the database, too", "node", d.nodes[i].Node)
		d.rows = true
		d.nudge()
	case !needed && d.rows:
		d.log.Info("all relays of this service hear each other: where tunnels are is not told by the database any more")
		d.rows = false
		clear(d.cache)
	}
}

// noteTunnel notes that a host's row may be wrong. While there are no rows it notes those
// that would have to be made or deleted. mu is held.
func (d *directory) noteTunnel(host string) {
	if _, written := d.written[host]; !d.rows && !written && !d.holds(host) {
		delete(d.dirty, host)
		return
	}
	d.dirty[host] = true
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
func (d *directory) lookAnew(ctx context.Context) (known bool) {
	d.mu.Lock()
	called := d.now()
	known = called.Sub(d.seenAt) < freshFor
	due := !known && !d.storeIsAway() && called.Sub(d.anewAt) >= freshFor
	overdue := !d.anewSince.IsZero() && called.Sub(d.anewSince) >= anewWait
	d.mu.Unlock()
	if !due || overdue {
		return known
	}
	looked := d.flight.DoChan("", func() (any, error) { // no server name is empty
		d.mu.Lock()
		d.anewSince = d.now()
		d.mu.Unlock()
		ctx, cancel := context.WithTimeout(kv.WithTurn(context.WithoutCancel(ctx), "lookups"), lookupWait)
		defer cancel()
		// Strangers cause it, so nothing is read along: that it failed would cost far larger reads.
		err := d.readNodes(ctx, kv.Rows{}, func(kv.Tx, error) {})
		if err != nil {
			d.log.Warn("looking for new relays failed; those known count", "err", err)
			d.lookupFailed(err) // so that not everybody waits for it
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.anewSince = time.Time{}
		if err != nil {
			d.anewAt = d.now()
		}
		return nil, nil
	})
	select {
	case <-looked:
	case <-time.After(anewWait):
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return called.Sub(d.seenAt) < freshFor // not by how late this goes on
}

// withoutRows are the nodes to ask for a server name where no row names one, and nobody
// says to hold its tunnel: all but those that are known to be without it. The others were
// not heard, were too busy to answer, or came after the question. What a node with news
// needs and writes is for that node to decide, so a row that is missing says nothing about
// it.
func (d *directory) withoutRows(ctx context.Context, serverName string, without []string) findings {
	known := d.lookAnew(ctx)
	found := d.lastKnown(serverName)
	found.nodes = slices.DeleteFunc(found.nodes, func(n nodeRow) bool { return slices.Contains(without, n.Run) })
	found.sure = known && len(found.nodes) == 0
	return d.reached(found)
}

// byRows goes by what the rows say, where they name somebody.
func (d *directory) byRows(ctx context.Context, serverName string, nodes []nodeRow, without []string) findings {
	if len(nodes) == 0 && d.unheardBy != nil {
		return d.withoutRows(ctx, serverName, without)
	}
	return d.reached(findings{nodes: nodes, sure: true})
}

// writeTunnels makes the rows of the hosts touched, and of those whose row gets
// old, what they should be: of some of them, so that the lease is renewed between.
func (d *directory) writeTunnels(ctx context.Context) error {
	hosts, more := d.takeDirty()
	if len(hosts) == 0 {
		return nil
	}
	now := d.now()
	here := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		here[host] = d.holds(host)
	}
	err := d.store.Update(ctx, func(tx kv.Tx) error {
		for _, host := range hosts {
			key := keyTunnels + host + "/" + d.self.Node
			if !here[host] {
				if err := tx.Delete(key); err != nil {
					return err
				}
				continue
			}
			if err := putRow(tx, key, tunnelRow{Run: d.self.Run, Since: now}, tunnelLife); err != nil {
				return err
			}
		}
		return nil
	})
	d.mu.Lock()
	for _, host := range hosts {
		switch {
		case err != nil:
			d.dirty[host] = true
		case here[host]:
			d.written[host] = now
		default:
			delete(d.written, host)
		}
	}
	d.mu.Unlock()
	if more && err == nil {
		d.nudge()
	}
	return err
}

// takeDirty takes as many of the hosts whose row may be wrong as are written at once, and
// says whether there are more. One that changes from here on is noted anew.
func (d *directory) takeDirty() (hosts []string, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.rows {
		return nil, false
	}
	for host, at := range d.written {
		if d.now().Sub(at) > tunnelLife/2 {
			d.dirty[host] = true
		}
	}
	for host := range d.dirty {
		if len(hosts) == tunnelsAtOnce {
			break
		}
		hosts = append(hosts, host)
		delete(d.dirty, host)
	}
	slices.Sort(hosts) // so that no two transactions wait for each other
	return hosts, len(d.dirty) > 0
}

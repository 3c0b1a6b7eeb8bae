package news

import "time"

// other is what this node knows of another one. News.mu guards it.
type other struct {
	Node
	since   time.Time // when it was first known to live
	number  uint64    // of its last message
	heardAt time.Time // zero: not yet
}

// expect keeps what was known of the nodes that still live.
func (n *News) expect(nodes []Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := make(map[string]*other, len(nodes))
	for _, node := range nodes {
		if o := n.others[node.Name]; o != nil && o.Node == node {
			now[node.Name] = o
			continue
		}
		now[node.Name] = &other{Node: node, since: time.Now()}
		n.doubt = true // it may have spoken before it was known
	}
	n.others = now
}

// hear takes a message. One that is too large, makes no sense or is not newer than
// the last of its node is dropped; one of a node not known to live only has
// everything looked at.
func (n *News) hear(b []byte) {
	if n.cfg.Lose != nil && n.cfg.Lose() {
		return
	}
	m, ok := parse(b)
	if !ok || m.Node == n.cfg.Node {
		return
	}
	if n.counts(m) {
		n.cfg.Heard(m.Changed)
	}
}

// counts notes the number of a message, and says whether it has news.
func (n *News) counts(m message) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.others[m.Node]
	if o == nil || o.Run != m.Run {
		n.doubt = true
		return false
	}
	last, beat := o.number, len(m.Changed) == 0
	if m.Number < last || m.Number == last && !beat {
		return false // older, or said again
	}
	whole := m.Number == last || m.Number == last+1 && !beat
	if o.heardAt.IsZero() || !whole {
		n.doubt = true
	}
	o.number, o.heardAt = m.Number, time.Now()
	return !beat
}

// miss notes that something may not have been heard.
func (n *News) miss(why string) {
	n.log.Info("news of other nodes may have been missed", "why", why)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.doubt = true
}

// Unheard are the runs of the nodes that live and were not heard for so long, and for no
// less than it takes to be silent.
func (n *News) Unheard(long time.Duration) (runs []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.others {
		last := o.heardAt
		if last.IsZero() {
			last = o.since.Add(-silentAfter) // it has never been heard, and is not yet
		}
		if time.Since(last) > max(long, silentAfter) {
			runs = append(runs, o.Run)
		}
	}
	return runs
}

// all are the runs of the other nodes that live.
func (n *News) all() (runs []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.others {
		runs = append(runs, o.Run)
	}
	return runs
}

// reached are the runs of the nodes to which a way has stood since begun, and that were
// heard over it: each says what it listens to before anything else. Without a way the own
// server answers at once that nobody listens.
func (n *News) reached(begun time.Time) (runs []string) {
	routes, err := n.server.Load().Routez(nil)
	if err != nil {
		return nil
	}
	standing := make(map[string]time.Time, len(routes.Routes))
	for _, r := range routes.Routes {
		if r.Account == "" && r.NumSubs > 0 { // one that ends loses what it listens to first
			standing[r.RemoteName] = r.Start
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.others {
		since, ok := standing[serverName(o.Name, o.Run)]
		if ok && since.Before(begun) && o.heardAt.After(since) && time.Since(o.heardAt) <= silentAfter {
			runs = append(runs, o.Run)
		}
	}
	return runs
}

// Missed says whether something may have been missed since the last call: a number
// was left out, a connection broke, or a node that lives is not heard. While a node
// lives that has no news at all, it is always so.
func (n *News) Missed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	missed := n.doubt
	n.doubt = false
	for _, o := range n.others {
		if time.Since(o.heardAt) > silentAfter {
			missed = true
		}
	}
	return missed
}

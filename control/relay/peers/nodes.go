package peers

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/internal/broadcast"
)

// The nodes of one control plane find each other in the store they share:
//
//	relay-node/NODE   nodeRow, a lease that the node renews
//
// Which tunnels they hold they say themselves, by news, and nothing of that is in the
// store: a node that dies takes its tunnels along without anybody having to clean up.
const (
	keyNodes = "relay-node/"

	// lease is how long a node counts without renewing, and thus how long after
	// its death others still send it visitors, whom they then turn away.
	lease      = 15 * time.Second
	renewEvery = lease / 2 // a try that fails is followed by others each second
	// awayFor is how long the store was not read when leases may have ended because
	// nobody could renew them.
	awayFor = lease / 3
	// lookEvery is how late another node's coming and going may be noticed.
	lookEvery = 2 * time.Second
	// unheardFor is how long a node that lives is not heard before that is said: one that
	// was killed is not taken for alive as long.
	unheardFor = lease + lease/3

	storeWait = 5 * time.Second
)

// nodeRow is a node as the others see it.
type nodeRow struct {
	Node     string           `json:"node"`
	Run      string           `json:"run"` // random, of one run of the program
	Peer     string           `json:"peer"`
	Relay    controlapi.Relay `json:"relay"`
	Draining bool             `json:"draining,omitempty"`
	// News is where this node hears news, if it does.
	News    string `json:"news,omitempty"`
	Version string `json:"version,omitempty"` // of its program
	// Public are the IP addresses at which visitors reach it, with spaces between them; empty
	// where it does not say, and where none should be sent there any more.
	Public string `json:"public,omitempty"`
	// Protocol is what it speaks with other nodes; 0 before version 0.1.0.
	Protocol int `json:"protocol,omitempty"`
}

// nodeProtocol is what this version's nodes speak with each other.
const nodeProtocol = 1

// Peers are the other nodes of a control plane, as one of them knows them.
type Peers struct {
	cfg      Config
	self     nodeRow
	domain   string // with a leading dot; what is outside is never looked up
	keys     *keys
	failures atomic.Uint64

	wake    chan struct{} // has room for one
	asks    chan struct{} // a place for each visitor other nodes are asked for
	flight  singleflight.Group
	looking chan struct{} // has room for one: who reads and tells who is there, as what was read later counts

	cutOff    atomic.Bool
	silence   silence        // whoever looks around owns it
	greetings sync.WaitGroup // of nodes that are asked whether they are there

	mu        sync.Mutex           // guards what follows
	nodes     []nodeRow            // alive, this one included, by name
	seenAt    time.Time            // when nodes was read
	anewAt    time.Time            // when lookAnew failed last
	anewSince time.Time            // when the read of lookAnew that is under way began
	patience  time.Time            // until when nobody is taken for gone
	last      map[string]known     // by host: for when the store is away
	failed    int                  // lookups in a row
	away      bool                 // the store did not answer lookups, and has not been read since
	unreached map[string]time.Time // nodes that could not be reached, by run, and until when
	renewed   bool                 // this run wrote its row
	namesake  string               // the run of another relay with this node's name
	refused   []string             // the runs of nodes of before version 0.1.0
	notHeard  []string             // the runs of nodes that have no way to tell this one
	draining  bool
	leaving   bool // visitors should be sent elsewhere
}

// Touch says that a tunnel for host came or went.
func (p *Peers) Touch(host string) { p.cfg.Hold(host, p.cfg.Holds) }

// Drain asks the others to send agents elsewhere.
func (p *Peers) Drain() {
	p.mu.Lock()
	p.draining = true
	p.mu.Unlock()
	broadcast.Raise(p.wake)
}

// Leave has nobody sent here any more by names: it is about to drain.
func (p *Peers) Leave() {
	p.mu.Lock()
	p.leaving = true
	p.mu.Unlock()
	broadcast.Raise(p.wake)
}

// Run keeps this node's row, the view of the others and CutOff up to date until ctx ends,
// and then withdraws this node. What fails is tried again: the row follows what is so, not
// what has happened.
func (p *Peers) Run(ctx context.Context) {
	ctx = kv.First(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(ctx) })
	defer p.greetings.Wait()
	defer watching.Wait()
	const step = time.Second
	tick := time.NewTicker(step)
	defer tick.Stop()
	var renewed, looked time.Time
	var written nodeRow
	for {
		now := time.Now() // of intervals in this process, not of rows
		if row := p.row(); now.Sub(renewed) >= renewEvery || row != written {
			if p.try(ctx, "renewing this relay's lease", p.renew) {
				renewed, written = now, row
			}
		}
		if now.Sub(looked) >= lookEvery-step/2 { // ticks come a little early, too
			if p.try(ctx, "looking for other relays", p.look) {
				looked = now
			}
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
			defer cancel()
			p.try(last, "withdrawing this relay", p.withdraw)
			return
		case <-tick.C:
		case <-p.wake:
		}
	}
}

// try runs a step and reports whether it worked.
func (p *Peers) try(ctx context.Context, what string, step func(context.Context) error) bool {
	limited, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	err := step(limited)
	if err != nil && ctx.Err() == nil {
		p.cfg.Log.Warn(what+" failed", "err", err)
	}
	return err == nil
}

// row is what this node says of itself now.
func (p *Peers) row() nodeRow {
	row := p.self
	row.News = p.cfg.News()
	p.mu.Lock()
	defer p.mu.Unlock()
	if row.Draining = p.draining; p.draining || p.leaving {
		row.Public = ""
	}
	return row
}

// renew writes this node's row.
func (p *Peers) renew(ctx context.Context) error {
	row := p.row()
	value, err := json.Marshal(row)
	if err != nil {
		return err
	}
	if err := p.cfg.Store.PutAll(ctx, lease, kv.Item{Key: keyNodes + row.Node, Value: value}); err != nil {
		return err
	}
	p.mu.Lock()
	p.renewed = true
	p.mu.Unlock()
	return nil
}

// warnOfNamesake looks whether another relay writes this one's row. Until this run has
// written it, it may be that of the run before. mu is held.
func (p *Peers) warnOfNamesake(nodes []nodeRow) {
	if !p.renewed {
		return
	}
	i := slices.IndexFunc(nodes, func(n nodeRow) bool { return n.Node == p.self.Node && n.Run != p.self.Run })
	if i >= 0 && nodes[i].Run != p.namesake {
		p.namesake = nodes[i].Run
		p.cfg.Log.Warn("another relay has this node's name; give them different names", "node", p.self.Node)
	}
}

// refuseBefore leaves out the nodes of before version 0.1.0, which this one does not work
// with: they get neither visitors nor computers from here. mu is held.
func (p *Peers) refuseBefore(nodes []nodeRow) []nodeRow {
	before := p.refused
	p.refused = nil
	return slices.DeleteFunc(nodes, func(n nodeRow) bool {
		if n.Protocol >= nodeProtocol || n.Node == p.self.Node { // whose row is that of its last run
			return false
		}
		if p.refused = append(p.refused, n.Run); !slices.Contains(before, n.Run) {
			p.cfg.Log.Error("a node of a version before 0.1.0 uses this database, and is refused: it gets no visitors and no computers from here; stop it, and start this version in its place", "node", n.Node, "address", n.Peer)
		}
		return true
	})
}

// warnOfSilence says which nodes live and are not heard, as when no port for news is open
// between two of them: their tunnels are found by asking them for each visitor. mu is held.
func (p *Peers) warnOfSilence() {
	before := p.notHeard
	p.notHeard = p.cfg.Unheard(unheardFor)
	for _, n := range p.others() {
		if slices.Contains(p.notHeard, n.Run) && !slices.Contains(before, n.Run) {
			p.cfg.Log.Warn("a relay of this service lives and is not heard: is its port for news open to this one?", "node", n.Node, "address", n.News)
		}
	}
}

// withdraw deletes this node's row.
func (p *Peers) withdraw(ctx context.Context) error {
	return p.cfg.Store.Update(ctx, func(tx kv.Tx) error {
		row, _, err := kv.GetJSON[nodeRow](tx, keyNodes+p.self.Node)
		if err != nil || row.Run != p.self.Run {
			return err
		}
		return tx.Delete(keyNodes + p.self.Node)
	})
}

// look reads who is there.
func (p *Peers) look(ctx context.Context) error {
	select {
	case p.looking <- struct{}{}:
		defer func() { <-p.looking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var nodes []nodeRow
	err := p.cfg.Store.ViewOf(ctx, kv.Rows{Prefixes: []string{keyNodes}}, func(tx kv.Tx) (err error) {
		nodes, err = livingNodes(tx)
		return err
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	if now := p.cfg.Now(); !p.seenAt.IsZero() && now.Sub(p.seenAt) > awayFor {
		// The store was away, so leases ended that nobody could renew: agents
		// must not all leave nodes that are about to do so.
		p.patience = now.Add(renewEvery + lookEvery)
	}
	if p.cfg.Now().Before(p.patience) {
		nodes = withMissing(nodes, p.nodes)
	}
	nodes = p.refuseBefore(nodes)
	p.warnOfNamesake(nodes)
	changed := !slices.Equal(p.nodes, nodes)
	p.nodes, p.seenAt, p.away, p.failed = nodes, p.cfg.Now(), false, 0
	p.warnOfSilence()
	maps.DeleteFunc(p.unreached, func(_ string, until time.Time) bool { return !p.cfg.Now().Before(until) })
	p.mu.Unlock()
	if changed {
		p.cfg.Changed()
		p.cfg.Neighbours(p.neighbours(nodes))
	}
	return nil
}

func (p *Peers) neighbours(nodes []nodeRow) []Neighbour {
	var others []Neighbour
	for _, n := range nodes {
		if n.Node != p.self.Node {
			others = append(others, Neighbour{Node: n.Node, Run: n.Run, News: n.News})
		}
	}
	return others
}

// withMissing adds to nodes those of before that are not among them.
func withMissing(nodes, before []nodeRow) []nodeRow {
	for _, old := range before {
		if !slices.ContainsFunc(nodes, func(n nodeRow) bool { return n.Node == old.Node }) {
			nodes = append(nodes, old)
		}
	}
	slices.SortFunc(nodes, func(a, b nodeRow) int { return strings.Compare(a.Node, b.Node) })
	return nodes
}

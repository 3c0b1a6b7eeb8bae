package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
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
	// nodesAtOnce bounds one read of nodes.
	nodesAtOnce = 64

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
	// Protocol is what it speaks with other nodes; 0 before version 0.1.0.
	Protocol int `json:"protocol,omitempty"`
}

// nodeProtocol is what this version's nodes speak with each other.
const nodeProtocol = 1

// directory is one node's view of the others. Its run method keeps this one's row and
// the view up to date.
type directory struct {
	store     kv.Store
	self      nodeRow
	domain    string // with a leading dot; what is outside is never looked up
	holds     func(host string) bool
	news      func() string
	tell      func() // the nodes that agents should know have changed
	othersAre func([]Neighbour)
	hold      func(host string, holds func(string) bool)
	holders   func(ctx context.Context, host string, most int) (runs, without []string)
	unheardBy func(long time.Duration) (runs []string)
	now       func() time.Time
	log       *slog.Logger

	wake    chan struct{} // has room for one
	asks    chan struct{} // a place for each visitor other nodes are asked for
	flight  singleflight.Group
	looking chan struct{} // has room for one: who reads and tells who is there, as what was read later counts

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
}

func newDirectory(p Peers, node string, holds func(string) bool, now func() time.Time, log *slog.Logger) *directory {
	tell := p.Changed
	if tell == nil {
		tell = func() {}
	}
	self := nodeRow{Node: node, Run: cmp.Or(p.Run, rand.Text()), Peer: p.Address, Relay: p.Relay, Version: p.Version, Protocol: nodeProtocol}
	others := p.Neighbours
	if others == nil {
		others = func([]Neighbour) {}
	}
	return &directory{
		store:     p.Store,
		self:      self,
		news:      p.News,
		othersAre: others,
		hold:      p.Hold,
		holders:   p.Holders,
		unheardBy: p.Unheard,
		domain:    "." + p.Domain,
		holds:     holds,
		tell:      tell,
		now:       now,
		log:       log,

		wake:      make(chan struct{}, 1),
		looking:   make(chan struct{}, 1),
		asks:      make(chan struct{}, asksAtOnce),
		last:      make(map[string]known),
		unreached: make(map[string]time.Time),
	}
}

// touch says that a tunnel for host came or went.
func (d *directory) touch(host string) { d.hold(host, d.holds) }

// drain asks the others to send agents elsewhere.
func (d *directory) drain() {
	d.mu.Lock()
	d.draining = true
	d.mu.Unlock()
	d.nudge()
}

func (d *directory) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run keeps row and view until ctx ends, and then withdraws this node. What
// fails is tried again: the row follows what is so, not what has happened.
func (d *directory) run(ctx context.Context) {
	const step = time.Second
	tick := time.NewTicker(step)
	defer tick.Stop()
	var renewed, looked time.Time
	var drained bool
	for {
		now := time.Now() // of intervals in this process, not of rows
		d.mu.Lock()
		draining := d.draining
		d.mu.Unlock()
		if now.Sub(renewed) >= renewEvery || draining != drained {
			if d.try(ctx, "renewing this relay's lease", d.renew) {
				renewed, drained = now, draining
			}
		}
		if now.Sub(looked) >= lookEvery-step/2 { // ticks come a little early, too
			if d.try(ctx, "looking for other relays", d.look) {
				looked = now
			}
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
			defer cancel()
			d.try(last, "withdrawing this relay", d.withdraw)
			return
		case <-tick.C:
		case <-d.wake:
		}
	}
}

// try runs a step and reports whether it worked.
func (d *directory) try(ctx context.Context, what string, step func(context.Context) error) bool {
	limited, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	err := step(limited)
	if err != nil && ctx.Err() == nil {
		d.log.Warn(what+" failed", "err", err)
	}
	return err == nil
}

// renew writes this node's row.
func (d *directory) renew(ctx context.Context) error {
	row := d.self
	d.mu.Lock()
	row.Draining = d.draining
	d.mu.Unlock()
	row.News = d.news()
	value, err := json.Marshal(row)
	if err != nil {
		return err
	}
	if err := d.store.PutAll(ctx, lease, kv.Item{Key: keyNodes + row.Node, Value: value}); err != nil {
		return err
	}
	d.mu.Lock()
	d.renewed = true
	d.mu.Unlock()
	return nil
}

// warnOfNamesake looks whether another relay writes this one's row. Until this run has
// written it, it may be that of the run before. mu is held.
func (d *directory) warnOfNamesake(nodes []nodeRow) {
	if !d.renewed {
		return
	}
	i := slices.IndexFunc(nodes, func(n nodeRow) bool { return n.Node == d.self.Node && n.Run != d.self.Run })
	if i >= 0 && nodes[i].Run != d.namesake {
		d.namesake = nodes[i].Run
		d.log.Warn("another relay has this node's name; give them different names", "node", d.self.Node)
	}
}

// refuseBefore leaves out the nodes of before version 0.1.0, which this one does not work
// with: they get neither visitors nor computers from here. mu is held.
func (d *directory) refuseBefore(nodes []nodeRow) []nodeRow {
	before := d.refused
	d.refused = nil
	return slices.DeleteFunc(nodes, func(n nodeRow) bool {
		if n.Protocol >= nodeProtocol || n.Node == d.self.Node { // whose row is that of its last run
			return false
		}
		if d.refused = append(d.refused, n.Run); !slices.Contains(before, n.Run) {
			d.log.Error("a node of a version before 0.1.0 uses this database, and is refused: it gets no visitors and no computers from here; stop it, and start this version in its place", "node", n.Node, "address", n.Peer)
		}
		return true
	})
}

// warnOfSilence says which nodes live and are not heard, as when no port for news is open
// between two of them: their tunnels are found by asking them for each visitor. mu is held.
func (d *directory) warnOfSilence() {
	before := d.notHeard
	d.notHeard = d.unheardBy(unheardFor)
	for _, n := range d.others() {
		if slices.Contains(d.notHeard, n.Run) && !slices.Contains(before, n.Run) {
			d.log.Warn("a relay of this service lives and is not heard: is its port for news open to this one?", "node", n.Node, "address", n.News)
		}
	}
}

// withdraw deletes this node's row.
func (d *directory) withdraw(ctx context.Context) error {
	return d.store.Update(ctx, func(tx kv.Tx) error {
		row, found, err := getRow[nodeRow](tx, keyNodes+d.self.Node)
		if err != nil || !found || row.Run != d.self.Run {
			return err
		}
		return tx.Delete(keyNodes + d.self.Node)
	})
}

// look reads who is there.
func (d *directory) look(ctx context.Context) error {
	select {
	case d.looking <- struct{}{}:
		defer func() { <-d.looking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var nodes []nodeRow
	err := d.store.ViewOf(ctx, kv.Rows{Prefixes: []string{keyNodes}}, func(tx kv.Tx) (err error) {
		nodes, err = livingNodes(tx)
		return err
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	if now := d.now(); !d.seenAt.IsZero() && now.Sub(d.seenAt) > awayFor {
		// The store was away, so leases ended that nobody could renew: agents
		// must not all leave nodes that are about to do so.
		d.patience = now.Add(renewEvery + lookEvery)
	}
	if d.now().Before(d.patience) {
		nodes = withMissing(nodes, d.nodes)
	}
	nodes = d.refuseBefore(nodes)
	d.warnOfNamesake(nodes)
	changed := !slices.Equal(d.nodes, nodes)
	d.nodes, d.seenAt, d.away, d.failed = nodes, d.now(), false, 0
	d.warnOfSilence()
	maps.DeleteFunc(d.unreached, func(_ string, until time.Time) bool { return !d.now().Before(until) })
	d.mu.Unlock()
	if changed {
		d.tell()
		d.othersAre(d.neighbours(nodes))
	}
	return nil
}

func (d *directory) neighbours(nodes []nodeRow) []Neighbour {
	var others []Neighbour
	for _, n := range nodes {
		if n.Node != d.self.Node {
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

func getRow[T any](tx kv.Tx, key string) (row T, found bool, err error) {
	value, err := tx.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return row, false, nil
	}
	if err == nil {
		err = json.Unmarshal(value, &row)
	}
	return row, err == nil, err
}

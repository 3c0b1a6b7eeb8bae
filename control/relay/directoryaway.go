package relay

import (
	"errors"
	"slices"
	"strings"
	"time"

	"porchlight/control/kv"
)

// While the store cannot be asked, visitors still find their computers: the nodes
// known last are asked themselves, first the one that had the tunnel. What a node
// answers is what it holds, so an old memory costs a question and never a wrong visit.
const (
	// knownFor is how long what was read counts while the store is away.
	knownFor = 24 * time.Hour
	// knownMost bounds the hosts remembered, at 16 bytes beside their names.
	knownMost = 16384
	// askedMost is how many nodes are asked for one visitor then, and asksAtOnce for how
	// many visitors at a time: strangers cause these questions by naming hosts. One
	// visitor's nodes are asked for askedFor in all.
	askedMost  = 8
	asksAtOnce = 64
	askedFor   = 3 * time.Second
	// failedMost lookups in a row make the store count as away, where they fail for a
	// reason that may be one lookup's own.
	failedMost = 3
)

// known is where a host's tunnel was when a node last said so.
type known struct {
	node string
	at   time.Time
}

// storeIsAway says that the store did not answer lately, so that nobody waits for it.
// mu is held.
func (d *directory) storeIsAway() bool { return d.away || d.now().Sub(d.seenAt) >= lease }

// lookupFailed notes that the store did not answer a lookup.
func (d *directory) lookupFailed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed++
	d.away = d.away || d.failed >= failedMost || errors.Is(err, kv.ErrUnavailable)
}

// heldBy notes that a node was asked, and has the tunnel.
func (d *directory) heldBy(serverName string, node nodeRow) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remember(serverName, node)
}

// remember keeps the node of a host for when the store is away. mu is held.
func (d *directory) remember(serverName string, node nodeRow) {
	host := d.hostOf(serverName)
	if _, ok := d.last[host]; !ok && len(d.last) >= knownMost {
		for other := range d.last {
			delete(d.last, other) // any of them: its visitors are asked for at more nodes
			break
		}
	}
	d.last[host] = known{node.Node, d.now()}
}

// hostOf is the computer's host in a server name, which is that of one of its apps
// where there is a label more: whatever the label is, the computer is remembered once.
func (d *directory) hostOf(serverName string) string {
	if _, parent, _ := strings.Cut(serverName, "."); "."+parent != d.domain {
		return parent
	}
	return serverName
}

// lastKnown are the nodes to ask for a server name while the store is away: all that
// were there when it last answered, the one that had the tunnel first. They are never
// sure.
func (d *directory) lastKnown(serverName string) findings {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now().Sub(d.seenAt) >= knownFor {
		return findings{}
	}
	had, nodes := d.last[d.hostOf(serverName)], d.others()
	if i := slices.IndexFunc(nodes, func(n nodeRow) bool { return n.Node == had.node }); i > 0 && d.now().Sub(had.at) < knownFor {
		first := nodes[i]
		nodes = slices.Insert(slices.Delete(nodes, i, i+1), 0, first)
	}
	return findings{nodes: nodes}
}

// mayAsk takes a place among those for whom nodes are asked without the store having
// named them, and is given back by asked.
func (d *directory) mayAsk() bool {
	select {
	case d.asks <- struct{}{}:
		return true
	default:
		return false
	}
}

func (d *directory) asked() { <-d.asks }

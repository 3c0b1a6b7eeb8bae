package peers

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
func (p *Peers) storeIsAway() bool { return p.away || p.cfg.Now().Sub(p.seenAt) >= lease }

// lookupFailed notes that the store did not answer a lookup.
func (p *Peers) lookupFailed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed++
	p.away = p.away || p.failed >= failedMost || errors.Is(err, kv.ErrUnavailable)
}

// heldBy keeps that a node was asked and has the tunnel, for when the store is away.
func (p *Peers) heldBy(serverName string, node nodeRow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	host := p.hostOf(serverName)
	if _, ok := p.last[host]; !ok && len(p.last) >= knownMost {
		for other := range p.last {
			delete(p.last, other) // any of them: its visitors are asked for at more nodes
			break
		}
	}
	p.last[host] = known{node.Node, p.cfg.Now()}
}

// hostOf is the computer's host in a server name, which is that of one of its apps
// where there is a label more: whatever the label is, the computer is remembered once.
func (p *Peers) hostOf(serverName string) string {
	if _, parent, _ := strings.Cut(serverName, "."); "."+parent != p.domain {
		return parent
	}
	return serverName
}

// lastKnown are the nodes to ask for a server name while the store is away: all that
// were there when it last answered, the one that had the tunnel first. They are never
// sure.
func (p *Peers) lastKnown(serverName string) findings {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.Now().Sub(p.seenAt) >= knownFor {
		return findings{}
	}
	had, nodes := p.last[p.hostOf(serverName)], p.others()
	if i := slices.IndexFunc(nodes, func(n nodeRow) bool { return n.Node == had.node }); i > 0 && p.cfg.Now().Sub(had.at) < knownFor {
		first := nodes[i]
		nodes = slices.Insert(slices.Delete(nodes, i, i+1), 0, first)
	}
	return findings{nodes: nodes}
}

// Package peers has the nodes of one control plane know each other, and carries visitors
// between them: a visitor who lands on a node without the tunnel goes on to one that has it.
//
//	nodes.go    which other nodes there are, living.go for whoever looks
//	holders.go  which of them has a tunnel, away.go while the store is away
//	cutoff.go   whether anybody is there at all
//	tls.go      how nodes show each other that they are
//	call.go     offering a visitor to a node, receive.go being offered one
//
// What becomes of a visitor here, the relay decides.
package peers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// Config of Peers. Changed and Neighbours may be nil, and Run and Version empty.
type Config struct {
	// Node is this node's name.
	Node    string
	Store   kv.Store
	Secrets Secrets
	// Listener takes connections of other nodes; Serve closes it.
	Listener net.Listener
	// Address is the host:port at which other nodes reach Listener.
	Address string
	// Relay is where agents reach this node.
	Relay controlapi.Relay
	// Domain is the parent of all computers' hosts.
	Domain string
	// Holds says whether the tunnel of a host is here.
	Holds func(host string) bool
	// Changed is called when RelaysFor may answer something else; it must
	// not block.
	Changed func()
	// Run is random, of this run of the program; without it one is made.
	Run string
	// Version of the program, for whoever looks which nodes live.
	Version string
	// Public are the IP addresses at which visitors reach this node, with spaces between them.
	Public string
	// News is the host:port where other nodes tell this one news.
	News func() string
	// Neighbours is called with the other nodes that live, whenever they are
	// others than before.
	Neighbours func([]Neighbour)
	// Hold tells the other nodes whether this one has the tunnel of a host, as holds says
	// while it is called. Holders asks which of them have it: their runs, most at most,
	// the likeliest first; where nobody says so, without are the runs that surely do not.
	// Unheard are the runs of the nodes that live and were not heard for so long.
	Hold    func(host string, holds func(host string) bool)
	Holders func(ctx context.Context, host string, most int) (runs, without []string)
	Unheard func(long time.Duration) (runs []string)
	Now     func() time.Time
	Log     *slog.Logger
}

// Neighbour is another node of the same control plane.
type Neighbour struct {
	Node, Run string
	News      string // where it hears news
}

var nodePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ValidNode says whether a node that has peers can have that name: small
// letters, digits and hyphens, at most 63.
func ValidNode(name string) bool { return nodePattern.MatchString(name) }

// New checks cfg and starts nothing.
func New(cfg Config) (*Peers, error) {
	switch {
	case !ValidNode(cfg.Node):
		return nil, fmt.Errorf("peers: a node with peers needs a name of small letters, digits and hyphens, not %q", cfg.Node)
	case cfg.Store == nil || cfg.Listener == nil || cfg.Address == "" || cfg.Domain == "" || cfg.Relay.Address == "":
		return nil, errors.New("peers: a store, a listener, an address, a domain or a relay is lacking")
	case cfg.News == nil || cfg.Hold == nil || cfg.Holders == nil || cfg.Unheard == nil:
		return nil, errors.New("peers: news is lacking")
	}
	keys, err := newKeys(cfg.Secrets, cfg.Node, cfg.Now)
	if err != nil {
		return nil, err
	}
	if cfg.Changed == nil {
		cfg.Changed = func() {}
	}
	if cfg.Neighbours == nil {
		cfg.Neighbours = func([]Neighbour) {}
	}
	return &Peers{
		cfg: cfg, keys: keys, domain: "." + cfg.Domain,
		self: nodeRow{
			Node: cfg.Node, Run: cmp.Or(cfg.Run, rand.Text()), Peer: cfg.Address, Relay: cfg.Relay,
			Version: cfg.Version, Protocol: nodeProtocol, Public: cfg.Public,
		},
		wake:      make(chan struct{}, 1),
		looking:   make(chan struct{}, 1),
		asks:      make(chan struct{}, asksAtOnce),
		last:      make(map[string]known),
		unreached: make(map[string]time.Time),
	}, nil
}

// Failures counts nodes that did not answer; there are none without peers.
func (p *Peers) Failures() uint64 {
	if p == nil {
		return 0
	}
	return p.failures.Load()
}

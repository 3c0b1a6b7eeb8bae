package serve

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
	"time"

	"porchlight/control/news"
	"porchlight/control/relay/peers"
	"porchlight/control/wiring"
)

// newsAbove is how far above the port for peers the one for news is, where nothing
// else is said.
const newsAbove = 100

// newsAddress is that for a peer address; a free port goes with a free port.
func newsAddress(host string, peerPort int) (string, error) {
	switch {
	case peerPort == 0:
		return net.JoinHostPort(host, "0"), nil
	case peerPort+newsAbove > 65535:
		return "", fmt.Errorf("there is no port %d above that of --peer-address: say where other nodes tell this one news (--news-address)", newsAbove)
	}
	return net.JoinHostPort(host, strconv.Itoa(peerPort+newsAbove)), nil
}

// joinNews has the parts tell and hear news of other nodes, where there are any,
// and returns the name of this run.
func (n *Node) joinNews(parts *wiring.Config) (run string) {
	if n.peers == nil {
		parts.Control.Tell = func([]string) {} // there is nobody to tell, nor to leave word for
		return ""
	}
	run = rand.Text()
	// All of these are for later, when there is news.
	parts.Control.Tell = func(computers []string) { n.news.Tell(computers) }
	parts.Control.Missed = func() bool { return n.news.Missed() }
	p := parts.Relay.Peers
	p.Run = run
	p.News = func() string { return n.news.Address() }
	p.Neighbours = func(all []peers.Neighbour) {
		nodes := make([]news.Node, len(all))
		for i, o := range all {
			nodes[i] = news.Node{Name: o.Node, Run: o.Run, Address: o.News}
		}
		n.news.Know(nodes)
	}
	p.Hold = func(host string, holds func(string) bool) { n.news.Hold(host, holds) }
	p.Holders = func(ctx context.Context, host string, most int) (runs, without []string) {
		found, without := n.news.Holders(ctx, host, most)
		for _, h := range found {
			runs = append(runs, h.Run)
		}
		return runs, without
	}
	p.Unheard = func(long time.Duration) []string { return n.news.Unheard(long) }
	return run
}

// listenForNews opens the port of --news-address.
func (n *Node) listenForNews(run string) error {
	if n.peers == nil {
		return nil
	}
	host, _, err := net.SplitHostPort(n.cfg.NewsAddress)
	if err != nil {
		return err
	}
	mutual, err := peers.NewsTLS(n.service.Keys.PeerSecrets, n.cfg.Node, host, time.Now)
	if err != nil {
		return err
	}
	n.news, err = news.New(news.Config{
		Node: n.cfg.Node, Run: run, Listen: n.cfg.NewsAddress, TLS: mutual,
		Heard: n.service.Agents.Heard, Log: n.cfg.Log.With("part", "news"),
	})
	if err != nil {
		return err
	}
	if err := n.news.Listen(); err != nil {
		return cannotListen(n.cfg.NewsAddress, "--news-address", err)
	}
	return nil
}

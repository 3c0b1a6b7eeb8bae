package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"porchlight/control/kv"
	"porchlight/control/relay"
	"porchlight/control/relay/peers"
)

// completePeers checks what makes this node one of several.
func (c *Config) completePeers() error {
	if c.PeerAddress == "" {
		if c.NewsAddress != "" {
			return errors.New("--news-address is for one of several nodes: it goes with --peer-address")
		}
		return nil
	}
	host, port, ok := hostPort(c.PeerAddress)
	switch {
	case !ok || !reachable(host):
		return fmt.Errorf("%q is not an address of the form 10.0.0.1:7443 (--peer-address)", c.PeerAddress)
	case !kv.Shared(c.StoreURL()):
		return errors.New("several nodes need one store: --peer-address goes with --postgres URL")
	case c.TLS == TLSACME && c.SealKey == "":
		return errors.New("several nodes have one certificate in their store, sealed by a key that each of them has: make it once with porchlight-control seal-key make FILE, copy the file to every node and name it there with --seal-key FILE; or give every node the certificate (--tls files)")
	case !peers.ValidNode(c.Node):
		return fmt.Errorf("nodes that have peers need different names of small letters, digits and hyphens: --node %q is none", c.Node)
	}
	if c.NewsAddress == "" {
		var err error
		if c.NewsAddress, err = newsAddress(host, port); err != nil {
			return err
		}
	}
	if newsHost, _, ok := hostPort(c.NewsAddress); !ok || !reachable(newsHost) {
		return fmt.Errorf("%q is not an address of the form 10.0.0.1:7543 (--news-address)", c.NewsAddress)
	}
	// Agents connect to particular nodes where there are several.
	if host, _, _ := hostPort(c.Listen[0]); c.TunnelAddress == "" && !reachable(host) {
		return errors.New("say where agents reach this node and no other: --tunnel-address relay1.example:443")
	}
	return nil
}

// reachable says whether others can connect to what a listener has as its host.
func reachable(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host != "" && (err != nil || !ip.IsUnspecified())
}

// listenForPeers opens the listener of --peer-address. A port of 0 is replaced
// by the one it got.
func (n *Node) listenForPeers(ctx context.Context) error {
	if n.cfg.PeerAddress == "" {
		return nil
	}
	l, err := relay.Listen(ctx, n.cfg.PeerAddress)
	if err != nil {
		return cannotListen(n.cfg.PeerAddress, "--peer-address", err)
	}
	n.peers = l
	host, _, err := net.SplitHostPort(n.cfg.PeerAddress)
	if err != nil {
		return err
	}
	n.cfg.PeerAddress = net.JoinHostPort(host, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	return nil
}

package serve

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"porchlight/control/kv"
	"porchlight/control/relay/peers"
	"porchlight/control/zone"
)

// completeDNS checks what makes this node answer for its names itself.
func (c *Config) completeDNS() error {
	c.public = nil // it is completed once by the command line, and once more
	for _, text := range c.PublicAddresses {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" || addr.IsUnspecified() || addr.IsMulticast() {
			return fmt.Errorf("%q is not an IP address that visitors could come to, like 203.0.113.7 (--public-address)", text)
		}
		c.public = append(c.public, addr.Unmap())
	}
	if c.DNS == "" {
		if c.DNSZone != "" {
			return errors.New("--dns-zone is for a node that answers DNS: say where it listens for that with --dns ADDRESS, as in --dns :53")
		}
		return nil
	}
	c.DNSZone = strings.TrimSuffix(c.DNSZone, ".")
	_, _, ok := hostPort(c.DNS)
	switch {
	case !ok:
		return fmt.Errorf("%q is not an address of the form 192.0.2.1:53 or :53 (--dns)", c.DNS)
	case c.DNSZone == "":
		return fmt.Errorf("say which zone is delegated to this server: --dns-zone %s, mostly", c.Domain)
	case c.DNSZone != c.Domain && !strings.HasSuffix(c.Domain, "."+c.DNSZone):
		return fmt.Errorf("the computers are below %s, which is not in the zone %s (--dns-zone)", c.Domain, c.DNSZone)
	case len(c.public) == 0:
		return errors.New("say at which IP addresses visitors reach this node, for those are what DNS answers: --public-address 203.0.113.7")
	}
	return nil
}

func (n *Node) listenForDNS() (err error) {
	if n.cfg.DNS == "" {
		return nil
	}
	z := zone.New(zone.Config{Name: n.cfg.DNSZone, Domain: n.cfg.Domain, AuthHost: n.cfg.AuthHost, Addresses: n.visited, Now: kv.Clock(n.store)})
	if n.dns, err = zone.Listen(n.cfg.DNS, z, n.cfg.Log.With("part", "dns")); err != nil {
		return cannotListen(n.cfg.DNS, "--dns", err)
	}
	return nil
}

// visited are the addresses of the nodes that visitors should be sent to.
func (n *Node) visited() []netip.Addr { return addressesOf(n.relay.Nodes(), n.cfg.public) }

// addressesOf are the addresses that nodes take visitors at. Where each of them is about to end
// or says nothing, own are the best there are.
func addressesOf(nodes []peers.Node, own []netip.Addr) (all []netip.Addr) {
	for _, node := range nodes {
		for _, text := range strings.Fields(node.Public) {
			if addr, err := netip.ParseAddr(text); err == nil {
				all = append(all, addr)
			}
		}
	}
	if len(all) == 0 {
		return own
	}
	return all
}

// publicText are the addresses as other nodes are told them.
func (c *Config) publicText() string {
	texts := make([]string, len(c.public))
	for i, addr := range c.public {
		texts[i] = addr.String()
	}
	return strings.Join(texts, " ")
}

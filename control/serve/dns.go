package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"porchlight/control/dnsupdate"
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
	c.DNSZone = strings.TrimSuffix(c.DNSZone, ".")
	switch {
	case c.DNS != "" && c.DNSUpdate != "":
		return errors.New("this node answers DNS itself (--dns), or tells another server (--dns-update): choose one")
	case c.DNS != "":
		return c.completeOwnDNS()
	case c.DNSUpdate != "" || c.DNSUpdateKey != "":
		return c.completeDNSUpdate()
	case c.DNSZone != "":
		return errors.New("--dns-zone is for a node that answers DNS: say where it listens for that with --dns ADDRESS, as in --dns :53")
	}
	return nil
}

func (c *Config) completeOwnDNS() error {
	_, _, ok := hostPort(c.DNS)
	switch {
	case !ok:
		return fmt.Errorf("%q is not an address of the form 192.0.2.1:53 or :53 (--dns)", c.DNS)
	case c.DNSZone == "":
		return fmt.Errorf("say which zone is delegated to this server: --dns-zone %s, mostly", c.Domain)
	case !c.inZone():
		return fmt.Errorf("the computers are below %s, which is not in the zone %s (--dns-zone)", c.Domain, c.DNSZone)
	case len(c.public) == 0:
		return errors.New("say at which IP addresses visitors reach this node, for those are what DNS answers: --public-address 203.0.113.7")
	}
	return nil
}

// completeDNSUpdate checks how another server is told of challenges.
func (c *Config) completeDNSUpdate() (err error) {
	c.DNSZone = cmp.Or(c.DNSZone, c.Domain)
	host, _, ok := hostPort(c.DNSUpdate)
	switch {
	case c.DNSUpdateKey == "":
		return errors.New("say which key the DNS server takes changes by: --dns-update-key FILE, as tsig-keygen writes it")
	case !ok || host == "":
		return fmt.Errorf("%q is not the address of a DNS server, like 192.0.2.53:53 (--dns-update)", c.DNSUpdate)
	case !c.inZone():
		return fmt.Errorf("the computers are below %s, which is not in the zone %s (--dns-zone)", c.Domain, c.DNSZone)
	}
	if c.dnsKey, err = dnsupdate.ReadKey(c.DNSUpdateKey); err != nil {
		return fmt.Errorf("%w (--dns-update-key)", err)
	}
	return nil
}

func (c *Config) inZone() bool {
	return c.DNSZone == c.Domain || strings.HasSuffix(c.Domain, "."+c.DNSZone)
}

// publishing is how challenges of the computers' certificates get into the DNS.
func (c *Config) publishing() (by func(ctx context.Context, name string, values []string) error, any bool) {
	if c.DNSUpdate == "" {
		return nil, c.DNS != ""
	}
	return dnsupdate.New(dnsupdate.Config{Server: c.DNSUpdate, Zone: c.DNSZone, Key: c.dnsKey}).Set, true
}

func (n *Node) listenForDNS() (err error) {
	if n.cfg.DNS == "" {
		return nil
	}
	z := zone.New(zone.Config{Name: n.cfg.DNSZone, Domain: n.cfg.Domain, AuthHost: n.cfg.AuthHost, Addresses: n.visited, Records: n.records, Now: kv.Clock(n.store)})
	if n.dns, err = zone.Listen(n.cfg.DNS, z, n.cfg.Log.With("part", "dns")); err != nil {
		return cannotListen(n.cfg.DNS, "--dns", err)
	}
	return nil
}

func (n *Node) records(ctx context.Context, computer string) (zone.Records, error) {
	found, err := n.service.Challenges.Of(ctx, computer)
	return zone.Records{Challenges: found.Challenges, CAA: found.CAA}, err
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

package publicnet

import (
	"net"
	"net/netip"
	"testing"

	"porchlight/test/programs"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::8"} {
		if !Plain(netip.MustParseAddr(ok)) {
			t.Errorf("%s is refused", ok)
		}
	}
	for what, addresses := range map[string][]string{
		"private":      {"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12::1", "fec0::1", "100.64.0.1", "198.18.0.1"},
		"loopback":     {"127.0.0.1", "127.255.255.254", "::1"},
		"link-local":   {"169.254.169.254", "fe80::1", "fe80::1%eth0"},
		"mapped":       {"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:1.1.1.1", "::1.1.1.1", "::127.0.0.1"},
		"NAT64":        {"64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::101:101", "64:ff9b:1::101:101"},
		"6to4, Teredo": {"2002:7f00:1::1", "2002:101:101::1", "192.88.99.1", "2001::1"},
		"unspecified":  {"0.0.0.0", "0.1.2.3", "::"},
		"multicast":    {"224.0.0.1", "239.255.255.250", "ff02::1", "ff0e::1"},
		"not assigned": {"240.0.0.1", "255.255.255.255", "4000::1", "100::1", "5f00::1"},
	} {
		for _, a := range addresses {
			if Plain(netip.MustParseAddr(a)) {
				t.Errorf("%s, %s: taken", a, what)
			}
		}
	}
	// What this computer is called in its own network is no more than private here; test/attack
	// gives it addresses that look public.
	for _, own := range programs.Got(net.InterfaceAddrs())(t) {
		if p := netip.MustParsePrefix(own.String()); Plain(p.Addr()) {
			t.Errorf("%s, this computer's own: taken", own)
		}
	}
	if Plain(netip.Addr{}) {
		t.Error("no address: taken")
	}
}

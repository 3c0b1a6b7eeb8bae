package proxy

import "testing"

// TestNetworksOfWrongCodes: the addresses that one visitor easily has are one
// network, and those of two visitors are two.
func TestNetworksOfWrongCodes(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.7:1": "192.0.2.7/32", "192.0.2.7:2": "192.0.2.7/32", "[::ffff:192.0.2.7]:1": "192.0.2.7/32",
		"192.0.2.8:1":         "192.0.2.8/32",
		"[2001:db8:1:2::7]:1": "2001:db8:1::/48", "[2001:db8:1:3::9%eth0]:1": "2001:db8:1::/48",
	} {
		if got := networkOf(remote).String(); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}

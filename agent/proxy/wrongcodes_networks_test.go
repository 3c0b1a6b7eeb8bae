package proxy

import (
	"net/netip"
	"testing"
	"time"
)

func TestWrongCodesByNetwork(t *testing.T) {
	t.Parallel()
	var c wrongCodes
	now := time.Unix(1_700_000_000, 0)
	in := func(remote string) (n int) {
		for c.try(networkOf(remote), now) {
			n++
		}
		return n
	}
	for remote, want := range map[string]int{"192.0.2.7:1": 60, "192.0.2.8:1": 60, "[2001:db8:1:2::7]:1": 60} {
		if n := in(remote); n != want {
			t.Errorf("%s: %d", remote, n)
		}
	}
	for _, same := range []string{"192.0.2.7:2", "[::ffff:192.0.2.7]:1", "[2001:db8:1:3::9]:1"} {
		if n := in(same); n != 0 {
			t.Errorf("%s: %d more", same, n)
		}
	}
	c.takeBack(networkOf("192.0.2.7:1"))
	if n := in("192.0.2.7:1"); n != 1 {
		t.Errorf("%d after one was taken back", n)
	}
	now = now.Add(3 * time.Second)
	if n := in("192.0.2.7:1"); n != 3 {
		t.Errorf("%d after three could be forgotten", n)
	}
	now = now.Add(-24 * time.Hour) // the clock was wrong, and is set right
	if in("192.0.2.7:1") == 0 {
		t.Error("a clock that was set back keeps a network out")
	}
	for i := range 3 * 4096 {
		c.try(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32), now)
		if len(c.networks) > 4096 {
			t.Fatalf("%d networks are remembered", len(c.networks))
		}
	}
}

package relay

import (
	"net/netip"
	"testing"
)

// Weakness: four addresses with the most that each may have hold every place for
// connections that have not said who they are. Checked: a dozen greedy sources
// leave room for others, and whoever has few is not refused on their account.
func TestFewSourcesLeaveRoom(t *testing.T) {
	t.Parallel()
	s := newBySource(4096, 1024)
	source := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 32)
	}
	taken := 0
	for i := range 12 {
		n := 0
		for s.enter(source(i)) {
			n++
		}
		if n > 1024 || n < fewestPerSource {
			t.Errorf("source %d has %d", i, n)
		}
		taken += n
	}
	if taken > 4000 {
		t.Errorf("12 sources hold %d of 4096", taken)
	}
	for range fewestPerSource {
		if !s.enter(source(100)) {
			t.Fatal("somebody with few is refused")
		}
	}
	for range 3 {
		for i := range 12 {
			s.leave(source(i))
		}
	}
	for s.enter(source(200)) {
		taken++
	}
	if s.count > s.total {
		t.Errorf("%d of %d", s.count, s.total)
	}
}

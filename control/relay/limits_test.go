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
			s.release(source(i))
		}
	}
	for s.enter(source(200)) {
		taken++
	}
	if s.count > s.total {
		t.Errorf("%d of %d", s.count, s.total)
	}
}

// Weakness: a limit by source that is the whole limit means that everybody comes
// from one address, and then nothing is kept for others.
// Attack: the operator lowers a limit below what one source gets by default, and
// somebody takes all there is.
// Checked: whatever a limit is, one source has half of it at most unless the
// operator says otherwise, and there is room for another.
func TestLoweredLimitsKeepRoomForOthers(t *testing.T) {
	t.Parallel()
	for _, whole := range []int{2, 20, 40, 500, 1024, 5000} {
		l := Limits{Visitors: whole, Handshakes: whole, AuthConnections: whole, AdmitPerSecond: whole}.For(1 << 20)
		for name, part := range map[string]int{
			"visitors": l.VisitorsPerSource, "handshakes": l.HandshakesPerSource,
			"auth connections": l.AuthConnectionsPerSource, "admissions": l.AdmitPerSecondPerSource,
		} {
			if part < 1 || part > whole/2 {
				t.Errorf("%d of %d %s for one source", part, whole, name)
			}
		}
		auth := newBySource(l.AuthConnections, l.AuthConnectionsPerSource)
		for auth.enter(netip.MustParsePrefix("198.51.100.7/32")) {
		}
		if !auth.enter(netip.MustParsePrefix("198.51.100.8/32")) {
			t.Errorf("one source took all %d connections", whole)
		}
	}
	given := Limits{Handshakes: 500, HandshakesPerSource: 500}.WithDefaults()
	if given.HandshakesPerSource != 500 {
		t.Error("what the operator set is not kept")
	}
}

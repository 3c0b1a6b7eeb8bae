package tunnel

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"porchlight/control/controlapi/tunnelwire"
)

// Weakness: a visitor who may come in has more addresses of IPv6 than are
// remembered, and by using them had everybody else's forgotten, for whom no place
// was kept once the tunnel was connected anew. Checked: they count as one.
func TestOneNetworkIsRememberedOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1<<30, 0)
	tunnel := &Tunnel{now: func() time.Time { return now }, admitted: make(map[netip.Addr]time.Time)}
	friend := netip.MustParseAddr("192.0.2.1")
	tunnel.letIn(friend)
	b := netip.MustParseAddr("2001:db8::").As16()
	for i := range 2 * tunnelwire.MaxAddresses {
		now = now.Add(time.Second)
		binary.BigEndian.PutUint32(b[12:], uint32(i))
		tunnel.letIn(netip.AddrFrom16(b))
	}
	tunnel.letIn(netip.MustParseAddr("::ffff:192.0.2.1"))
	if _, kept := tunnel.admitted[friend]; !kept || len(tunnel.admitted) != 2 {
		t.Errorf("%d are remembered, the friend: %v", len(tunnel.admitted), kept)
	}
}

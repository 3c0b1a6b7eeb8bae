package tunnel

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// Of visits that were aborted the newest are remembered, and for as long as a relay may
// still have them.
func TestAbortedVisitsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &session{tunnel: &Tunnel{}, ctx: t.Context()}
		abort := func() tunnelwire.Ticket {
			ticket := tunnelwire.NewTicket()
			s.aborted(ticket)
			return ticket
		}
		first := abort()
		var last tunnelwire.Ticket
		for range abortedMost {
			last = abort()
		}
		told := s.tunnel.abortedLately()
		if len(told) != abortedMost || told[0] == first || told[abortedMost-1] != last {
			t.Errorf("%d are told", len(told))
		}
		time.Sleep(abortedFor - time.Second)
		newest := abort()
		time.Sleep(2 * time.Second)
		if told := s.tunnel.abortedLately(); len(told) != 1 || told[0] != newest {
			t.Errorf("%d are told a while later", len(told))
		}
	})
}

// Weakness: strangers whom the gate turned away, a few a second, pushed out the visits whose
// access had ended. Checked: only those of people who were let in are remembered.
func TestStrangersAreNotRemembered(t *testing.T) {
	t.Parallel()
	tun := &Tunnel{now: time.Now, admitted: map[netip.Addr]time.Time{}}
	s := &session{tunnel: tun, ctx: t.Context()}
	come := func() *visitorConn {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		return &visitorConn{Conn: here, session: s, ticket: tunnelwire.NewTicket(), source: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}
	}
	member, stranger := come(), come()
	member.LetIn()
	for _, conn := range []*visitorConn{stranger, member} {
		programs.Must(t, conn.Abort())
	}
	if told := tun.abortedLately(); len(told) != 1 || told[0] != member.ticket {
		t.Errorf("%d are told", len(told))
	}
}

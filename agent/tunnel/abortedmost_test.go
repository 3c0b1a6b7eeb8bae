package tunnel

import (
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi/tunnelwire"
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

package relay

import "porchlight/control/controlapi/tunnelwire"

// abortNamed ends the visits whose data connections had these tickets: the agent of the
// session's computer says that it aborted them, which the network may have kept from this
// side. Tickets are looked up among that computer's visits: nobody ends those of another.
func (t *routes) abortNamed(s *session, tickets []tunnelwire.Ticket) {
	var flows []*flow
	t.mu.Lock()
	if c := t.byID[s.computer.ID]; c != nil && !s.kicked {
		for _, ticket := range tickets {
			if f := c.came[ticket.ID()]; f != nil && f.ticket.Equal(ticket) {
				flows = append(flows, f)
			}
		}
	}
	t.mu.Unlock()
	abortEach(flows)
}

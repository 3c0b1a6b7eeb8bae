package tunnel

import (
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/internal/broadcast"
)

// A visit that is aborted here, mostly because access ended, has its data connection
// reset, and by that the relay knows. Where the network has gone under it the relay hears
// nothing, and the visitor's own socket would hang until a system gives it up. So relays
// that are connected since are told which visits those were, of people who had been let in.

const (
	// abortedFor is how long relays are told of a visit: by then a relay's system has given
	// its data connection up.
	abortedFor = 5 * time.Minute
	// abortedMost are remembered, the newest.
	abortedMost = 4096
)

// aborted is a visit, by the ticket of its data connection.
type aborted struct {
	ticket tunnelwire.Ticket
	at     time.Time
}

// aborted notes that a visit which came by s was aborted. Sessions that begin later tell
// their relays, and those that stand do where s has ended already.
func (s *session) aborted(ticket tunnelwire.Ticket) {
	t := s.tunnel
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.aborted) == abortedMost {
		t.aborted = t.aborted[1:]
	}
	t.aborted = append(t.aborted, aborted{ticket, time.Now()})
	if s.ctx.Err() == nil {
		return
	}
	for _, standing := range t.sessions {
		if standing != nil {
			standing.tellAborted(ticket)
		}
	}
}

// abortedLately are the tickets that a relay is told when it was just connected. mu is held.
func (t *Tunnel) abortedLately() (tickets []tunnelwire.Ticket) {
	for len(t.aborted) > 0 && time.Since(t.aborted[0].at) > abortedFor {
		t.aborted = t.aborted[1:]
	}
	for _, a := range t.aborted {
		tickets = append(tickets, a.ticket)
	}
	return tickets
}

// tellAborted has the relay told of these soon. The tunnel's mu is held.
func (s *session) tellAborted(tickets ...tunnelwire.Ticket) {
	if len(tickets) > 0 {
		s.lost = append(s.lost, tickets...)
		broadcast.Raise(s.news)
	}
}

// tellLost tells the relay of as many as one frame names, and of the others once it has
// answered: thousands would fill a slow uplink for longer than its silence is waited for.
func (s *session) tellLost() error {
	s.tunnel.mu.Lock()
	if s.telling || len(s.lost) == 0 {
		s.tunnel.mu.Unlock()
		return nil
	}
	n := min(len(s.lost), tunnelwire.MaxTickets)
	tickets := s.lost[:n]
	s.lost, s.telling = s.lost[n:], true
	s.tunnel.mu.Unlock()
	if err := s.send(tunnelwire.Frame{Type: tunnelwire.Aborted, Tickets: tickets}); err != nil {
		return err
	}
	return s.ping()
}

// tellOn has the relay, which answered, told of further ones.
func (s *session) tellOn() {
	s.tunnel.mu.Lock()
	defer s.tunnel.mu.Unlock()
	if s.telling = false; len(s.lost) > 0 {
		broadcast.Raise(s.news)
	}
}

package relay

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi/tunnelwire"
)

var (
	errNoConnection = errors.New("relay: no data connection came in time")
	errSessionOver  = errors.New("relay: the tunnel has ended")
	errTicket       = errors.New("relay: the ticket is not valid")
)

const (
	// missingAfter is how long a ticket may be out before the agent is told that
	// nothing came of it and another one takes its place.
	missingAfter = 3 * time.Second
	// secureWaiting is how many visitors of one computer may wait for a connection
	// inside TLS. None is ever idle, so each visitor that asks for one waits:
	// strangers who do must not fill the line of the others.
	secureWaiting = 64
	// adaptEvery is how many ticks the pool's depth is watched before it shrinks.
	adaptEvery = 10
	tick       = time.Second
)

// dataConn is a parked data connection.
type dataConn struct {
	stream
	ticket tunnelwire.Ticket
	pool   *pool // whose it was
}

// alive reports whether the agent's end still stands. A parked connection has no
// goroutine of its own; this is looked up when it is taken.
func (c *dataConn) alive() bool {
	tcp := tcpUnder(c.stream)
	return tcp == nil || nothingCame(tcp)
}

// tcpUnder is the connection below TLS that ends here, if there is any, or nil where it is
// not one of the system's.
func tcpUnder(conn net.Conn) *net.TCPConn {
	if secure, ok := conn.(*tls.Conn); ok {
		prefixed, ok := secure.NetConn().(*prefixedConn)
		if !ok {
			return nil
		}
		under, _ := prefixed.Conn.(stream)
		conn = withoutHeader(under)
	}
	tcp, _ := conn.(*net.TCPConn)
	return tcp
}

// waiter is a visitor for whom no data connection was idle.
type waiter chan *dataConn

// pool is the data connections of one kind of one session. Its depth follows
// demand: it grows by one with each visitor that finds it empty or takes its
// last, and shrinks slowly by what has stayed idle throughout a while.
type pool struct {
	secure  bool // inside TLS, for visitors who must not be seen on the way
	least   int  // depth it never goes below
	most    int
	target  int
	idle    []*dataConn // longest parked first
	waiting []waiter    // first come first
	out     int         // tickets given out that may still come to something soon
	low     int         // fewest idle since the last adaptation
	paused  bool        // the agent gave tickets back: until the next tick only room is asked for
	room    int         // while paused: visitors who came through, and no ticket was asked for since
}

// demand is how many tickets to give out now. eager asks for every one missing;
// otherwise they gather until it is worth a frame.
func (p *pool) demand(eager bool) int {
	n := p.target + len(p.waiting) - len(p.idle) - p.out
	if p.paused {
		n = min(n, p.room)
	}
	if !eager && len(p.waiting) <= p.out && n < max(1, p.target/4) {
		return 0
	}
	return max(0, min(n, tunnelwire.MaxTickets))
}

// wake has the pool keep least connections; after sleep it keeps none.
func (p *pool) wake(least int) {
	p.least = least
	p.target = max(p.target, least)
}

func (p *pool) sleep() { p.least, p.target, p.low = 0, 0, 0 }

func (p *pool) grow() { p.target = min(p.target+1, p.most) }

// adapt shrinks a pool that has not needed its depth and returns what is too many.
func (p *pool) adapt() (surplus []*dataConn) {
	if p.low > p.target/4 {
		p.target = max(p.least, p.target-max(1, p.low/4))
	}
	if n := len(p.idle) - p.target; n > 0 {
		surplus = slices.Clone(p.idle[:n])
		p.idle = slices.Delete(p.idle, 0, n)
	}
	p.low = len(p.idle)
	return surplus
}

// issued is a ticket given out.
type issued struct {
	ticket   tunnelwire.Ticket
	pool     *pool
	at       time.Time
	reported bool // as missing; it is still good, but no longer counted on
}

type ticketID = [16]byte

// ticketBook finds the session a ticket was given out by. Tickets of other nodes
// and of sessions that have ended are in nobody's book.
type ticketBook struct {
	mu sync.Mutex
	by map[ticketID]*session
}

func (b *ticketBook) enter(s *session, tickets []tunnelwire.Ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = make(map[ticketID]*session)
	}
	for _, t := range tickets {
		b.by[t.ID()] = s
	}
}

func (b *ticketBook) strike(ids ...ticketID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		delete(b.by, id)
	}
}

// use strikes the ticket, whether it turns out to be valid or not, and returns
// the session it names.
func (b *ticketBook) use(t tunnelwire.Ticket) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.by[t.ID()]
	delete(b.by, t.ID())
	return s
}

// park puts a data connection with a valid ticket into its session's pool, or
// gives it to the visitor who waits for it, and closes any other.
func (r *Relay) park(conn stream, ticket tunnelwire.Ticket, secure bool) {
	s := r.tickets.use(ticket)
	if s == nil || s.park(conn, ticket, secure) != nil {
		r.counters.badTickets.Add(1)
		// Anybody can cause this as often as they like; it is counted.
		r.log.Debug("data connection refused: its ticket is not valid", "from", conn.RemoteAddr().String())
		_ = conn.Close()
	}
}

func (s *session) park(conn stream, ticket tunnelwire.Ticket, secure bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := s.pending[ticket.ID()]
	if !ok || s.ended {
		return errTicket
	}
	s.forgetTicket(ticket.ID(), entry)
	if !entry.ticket.Equal(ticket) || s.relay.now().Sub(entry.at) > tunnelwire.TicketLife || entry.pool.secure && !secure {
		return errTicket
	}
	if !secure {
		s.arrived++
	}
	p := entry.pool
	data := &dataConn{stream: withoutHeader(conn), ticket: ticket, pool: p}
	if len(p.waiting) > 0 {
		p.waiting[0] <- data // has room for one
		p.waiting = slices.Delete(p.waiting, 0, 1)
		return nil
	}
	p.idle = append(p.idle, data)
	return nil
}

// cameThrough notes that data was given its visitor. The agent holds one less that waits
// for one, so one that gave tickets back has room again.
func (s *session) cameThrough(data *dataConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := data.pool; p.paused {
		p.room++
		if p.demand(false) > 0 {
			s.nudge()
		}
	}
}

// forgetTicket takes a ticket out of the session's account. mu is held.
func (s *session) forgetTicket(id ticketID, entry issued) {
	delete(s.pending, id)
	if !entry.reported {
		entry.pool.out--
	}
}

// dataConn returns a data connection, idle or as soon as one comes, at most until
// the deadline. Those whose agent has gone meanwhile are passed over.
func (s *session) dataConn(secure bool, c *computer, source netip.Prefix, deadline time.Time) (*dataConn, error) {
	p := &s.pools[plainPool]
	if secure {
		p = &s.pools[securePool]
	}
	for {
		data, w, err := s.takeOrWait(p, c, source)
		if err != nil {
			return nil, err
		}
		if data == nil {
			defer s.line.release(source)
			return s.await(p, w, deadline)
		}
		if data.alive() {
			return data, nil
		}
		s.relay.counters.retried.Add(1)
		_ = data.Close()
	}
}

// takeOrWait returns an idle connection, the one parked last, or a place in the
// line, which the caller has to leave again.
func (s *session) takeOrWait(p *pool, c *computer, source netip.Prefix) (*dataConn, waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, nil, errSessionOver
	}
	s.visited = s.relay.now()
	if awake := &s.pools[plainPool]; awake.least == 0 {
		awake.wake(s.relay.cfg.Limits.PoolMin)
	}
	n := len(p.idle)
	if n <= 1 {
		p.grow()
	}
	if n > 0 {
		data := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.low = min(p.low, n-1)
		if s.resting || p.demand(false) > 0 {
			s.resting = false
			s.nudge()
		}
		return data, nil, nil
	}
	p.low = 0
	if p.secure && len(p.waiting) >= secureWaiting || !c.enter(s.line, source, s.relay.now()) {
		return nil, nil, overLimit(limitWaiting)
	}
	w := make(waiter, 1)
	p.waiting = append(p.waiting, w)
	s.nudge()
	return nil, w, nil
}

// await waits in line.
func (s *session) await(p *pool, w waiter, deadline time.Time) (*dataConn, error) {
	err := errNoConnection
	select {
	case data := <-w:
		return data, nil
	case <-s.done:
		err = errSessionOver
	case <-time.After(time.Until(deadline)):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return nil, err
	}
	return <-w, nil // it was given at the same moment
}

func (s *session) parked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pools[plainPool].idle) + len(s.pools[securePool].idle)
}

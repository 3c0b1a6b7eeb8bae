package relay

import (
	"time"

	"porchlight/control/controlapi/tunnelwire"
)

// What a session has to say to its agent, and when.

// writeWait bounds the writing of one frame.
const writeWait = 10 * time.Second

// nudge has write look at what there is to say, in a goroutine of its own if none runs
// it. It never blocks. mu is held.
func (s *session) nudge() {
	if s.claim() {
		s.relay.wg.Go(s.write)
	}
}

// claim is nudge for a caller who can run write itself, and reports whether it has to.
// mu is held.
func (s *session) claim() bool {
	s.more = true
	if s.writing {
		return false
	}
	s.writing = true
	return true
}

// write writes what the session has to say, until there is nothing more or the session is
// over. Only who has set writing runs it, or writeOnce: one goroutine at a time.
func (s *session) write() {
	for s.writeOnce() {
	}
}

// writeOnce is one step of write, and says whether there is another.
func (s *session) writeOnce() (more bool) {
	s.mu.Lock()
	ended, ticked := s.ended, s.ticked
	s.more, s.ticked = false, false
	farewell := s.farewell
	s.mu.Unlock()
	if ended {
		for _, f := range farewell {
			_ = s.send(f)
		}
		_ = s.conn.Close() // ends read
		return false
	}
	if ticked {
		s.tick()
	}
	var room [1]tunnelwire.Frame // nearly always a Pong is all
	for _, f := range s.compose(room[:0], ticked) {
		if s.send(f) != nil {
			s.end()
			_ = s.conn.Close()
			return false
		}
	}
	return !s.pause()
}

// pause ends a run of write if there is nothing more to say, and sets the clock for what
// is due later.
func (s *session) pause() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more || s.ended {
		return false
	}
	s.writing = false
	rests, until := s.restsUntil()
	if !rests && s.ticking {
		return true
	}
	if s.ticking = !rests; s.ticking {
		until = tick
	}
	switch {
	case s.clock == nil && until > 0:
		s.clock = time.AfterFunc(until, s.tickDue)
	case s.clock != nil && until > 0:
		s.clock.Reset(until)
	case s.clock != nil:
		s.clock.Stop()
	}
	return true
}

// tickDue is called by the clock.
func (s *session) tickDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ticking, s.ticked = false, true
	s.nudge()
}

func (s *session) send(f tunnelwire.Frame) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return err
	}
	if err := tunnelwire.WriteFrame(s.conn, f); err != nil {
		return err
	}
	return s.conn.SetWriteDeadline(time.Time{}) // one that stands wakes the process to no end
}

// compose appends the frames that are due, tickets among them.
func (s *session) compose(frames []tunnelwire.Frame, eager bool) []tunnelwire.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	if s.draining {
		s.draining = false
		frames = append(frames, tunnelwire.Frame{Type: tunnelwire.Drain})
	}
	if s.pinged {
		s.pinged = false
		pong := tunnelwire.Frame{Type: tunnelwire.Pong, Sent: s.sent}
		if s.sync.inStep {
			pong.Date = s.relay.cfg.Date().Unix()
		}
		frames = append(frames, pong)
	}
	for _, address := range s.come {
		frames = append(frames, tunnelwire.Frame{Type: tunnelwire.Come, Relay: address})
	}
	s.come = nil
	if missing := s.missing(eager); len(missing) > 0 {
		frames = append(frames, tunnelwire.Frame{Type: tunnelwire.Missing, Tickets: missing, Arrived: s.arrived})
	}
	for i := range s.pools {
		p := &s.pools[i]
		if tickets := s.issue(p, eager); len(tickets) > 0 {
			frames = append(frames, tunnelwire.Frame{Type: tunnelwire.Open, Tickets: tickets, TLS: p.secure})
		}
	}
	// One part each time: what visitors need comes in between.
	if part, more := s.sync.nextFrame(); part != nil {
		frames = append(frames, *part)
		if more {
			s.nudge()
		}
	}
	return frames
}

// missing are tickets that no data connection came with in time, each once. mu is held.
func (s *session) missing(eager bool) (tickets []tunnelwire.Ticket) {
	if !eager {
		return nil
	}
	now := s.relay.now()
	for id, entry := range s.pending {
		if !entry.reported && now.Sub(entry.at) > missingAfter && len(tickets) < tunnelwire.MaxTickets {
			entry.reported = true
			entry.pool.out--
			s.pending[id] = entry
			tickets = append(tickets, entry.ticket)
		}
	}
	return tickets
}

// issue makes the tickets for data connections that a pool needs now. mu is held.
func (s *session) issue(p *pool, eager bool) []tunnelwire.Ticket {
	limits := s.relay.cfg.Limits
	n := min(p.demand(eager), 2*limits.PoolMax+limits.WaitingPerComputer-len(s.pending))
	if n <= 0 {
		return nil
	}
	if s.pending == nil {
		s.pending = make(map[ticketID]issued)
	}
	now, tickets := s.relay.now(), make([]tunnelwire.Ticket, n)
	for i := range tickets {
		tickets[i] = tunnelwire.NewTicket()
		s.pending[tickets[i].ID()] = issued{ticket: tickets[i], pool: p, at: now}
	}
	p.out += n
	if p.paused {
		p.room -= n
	}
	s.relay.tickets.enter(s, tickets)
	if p.demand(eager) > 0 {
		s.nudge() // more than one frame holds
	}
	return tickets
}

// restsUntil says that nothing changes until a visitor comes or the agent speaks: then no
// clock is needed, and an idle computer sleeps. Whoever ends the rest nudges. What a
// computer parks is looked at once more after until, if that is not 0. mu is held.
func (s *session) restsUntil() (rests bool, until time.Duration) {
	s.resting = len(s.pending) == 0
	for i := range s.pools {
		p := &s.pools[i]
		s.resting = s.resting && !p.paused && len(p.waiting) == 0 && p.target == p.least && len(p.idle) == p.target && p.low == p.target
	}
	if s.pools[plainPool].least > 0 {
		until = max(tick, tunnelwire.AsleepAfter-s.relay.now().Sub(s.visited))
	}
	return s.resting, until
}

// tick expires tickets and adapts the pools.
func (s *session) tick() {
	var expired []ticketID
	var surplus []*dataConn
	// Files that wait for a visitor are given back while others find none.
	crowded := s.relay.crowdedLately()
	s.mu.Lock()
	now := s.relay.now()
	for id, entry := range s.pending {
		if now.Sub(entry.at) > tunnelwire.TicketLife {
			s.forgetTicket(id, entry)
			expired = append(expired, id)
		}
	}
	s.ticks++
	// Where files are short, agents sleep.
	asleep := crowded || now.Sub(s.visited) >= tunnelwire.AsleepAfter
	for i := range s.pools {
		s.pools[i].paused, s.pools[i].room = false, 0
		if asleep {
			s.pools[i].sleep()
		}
		if crowded {
			s.pools[i].target, s.pools[i].low = s.pools[i].least, 0
		}
		if crowded || asleep || s.ticks%adaptEvery == 0 {
			surplus = append(surplus, s.pools[i].adapt()...)
		}
	}
	s.mu.Unlock()
	s.relay.tickets.strike(expired...)
	for _, data := range surplus {
		_ = data.Close()
	}
}

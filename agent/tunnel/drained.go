package tunnel

import "porchlight/internal/broadcast"

// elsewhere is the session of the other slot, if that is with a relay that stays.
func (t *Tunnel) elsewhere(s *session) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.sessions[1-s.slot]; other != nil && !other.draining {
		return other
	}
	return nil
}

// drained is what follows when the relay asks to be left: that happens once the other
// relay has shown that it is there. Without one the session stays until there is, for a
// relay that asks still has visitors.
func (s *session) drained() error {
	if s.extra() { // nobody has to stand in for it
		return errDraining
	}
	t := s.tunnel
	t.mu.Lock()
	known := s.draining
	s.draining = true
	t.mu.Unlock()
	if len(t.cfg.Relays()) < slots {
		return errDraining
	}
	if !known {
		s.wg.Go(s.drain)
	}
	return nil
}

// drain ends the session as soon as another can stand in for it.
func (s *session) drain() {
	t := s.tunnel
	logged := false
	for s.ctx.Err() == nil {
		changed := t.Changes()
		other := t.elsewhere(s)
		if other != nil && other.answers(s) && t.elsewhere(s) == other {
			s.quit(errDraining)
			return
		}
		if other != nil {
			continue // it has ended, or goes away as well
		}
		if !logged {
			logged = true
			s.log.Info("the relay asks to be left; the connection stays until there is another")
		}
		select {
		case <-s.ctx.Done():
		case <-changed:
		}
	}
}

// answers waits until the relay has answered a ping, and says whether it did before this
// session, or the one that waits, ended.
func (s *session) answers(waiting *session) bool {
	select {
	case <-s.pongs: // of before
	default:
	}
	broadcast.Raise(s.probes)
	select {
	case <-s.pongs:
		return true
	case <-s.ctx.Done():
	case <-waiting.ctx.Done():
	}
	return false
}

// quit ends the session for a reason of our own.
func (s *session) quit(why error) {
	s.why.CompareAndSwap(nil, &why)
	_ = s.conn.Close() // ends read
}

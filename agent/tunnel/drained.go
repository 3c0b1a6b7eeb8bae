package tunnel

// elsewhere says that the computer is connected by the other slot, to a relay that
// stays.
func (t *Tunnel) elsewhere(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	other := t.sessions[1-s.slot]
	return other != nil && !other.draining
}

// drained is what follows when the relay asks to be left: that happens at once, unless no
// other is connected. Then the session stays until one is, for a relay that is
// only cut off from its own kind still has visitors.
func (s *session) drained() error {
	t := s.tunnel
	t.mu.Lock()
	known := s.draining
	s.draining = true
	t.mu.Unlock()
	if t.elsewhere(s) || len(t.cfg.Relays()) < slots {
		return errDraining
	}
	if !known {
		s.log.Info("the relay asks to be left; the connection stays until there is another")
		s.wg.Go(func() {
			for s.ctx.Err() == nil {
				changed := t.Changes()
				if t.elsewhere(s) {
					s.quit(errDraining)
					return
				}
				select {
				case <-s.ctx.Done():
				case <-changed:
				}
			}
		})
	}
	return nil
}

// quit ends the session for a reason of our own.
func (s *session) quit(why error) {
	s.why.CompareAndSwap(nil, &why)
	_ = s.conn.Close() // ends read
}

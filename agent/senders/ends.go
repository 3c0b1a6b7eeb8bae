package senders

import (
	"context"
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/internal/words"
)

// Run tells the owner which senders have come to their end, until ctx ends. It
// returns nil. Access keeps those out by itself, at the moment.
func (s *Senders) Run(ctx context.Context) error {
	changed, cancel := s.cfg.Changes.Subscribe()
	defer cancel()
	for {
		s.tellEnds()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// tellEnds tells of each once, over restarts, too.
func (s *Senders) tellEnds() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Access.ControlTime()
	for i, one := range s.all {
		if one.EndTold || one.Until.IsZero() || now.Before(one.Until) {
			continue
		}
		one.EndTold = true
		if err := s.cfg.Store.PutSender(one); err != nil {
			s.cfg.Log.Error("the owner could not be told that a sender has ended", "err", err)
			continue
		}
		s.all = slices.Clone(s.all)
		s.all[i] = one
		if app, here := s.cfg.Apps.ByID(one.AppID); here {
			s.cfg.Activity.Add(agentapi.Activity{
				At: s.cfg.Now().UTC(), Kind: agentapi.ActivitySenderEnded, What: one.Name, App: app.Label, Name: app.Name, Until: one.Until,
			})
			s.cfg.Note(agentapi.Notice{At: s.cfg.Now().UTC(), Kind: agentapi.ActivitySenderEnded, App: app.Name}, words.Text{
				words.Of("%[1]s ended for %[2]s. It was until %[3]s.", app.Label, one.Name, agentapi.LastDay(one.Until, now)),
			})
		}
	}
}

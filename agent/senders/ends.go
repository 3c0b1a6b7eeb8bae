package senders

import (
	"context"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
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

// tellEnds tells of each once, over restarts, too; twice where the computer stops in between.
func (s *Senders) tellEnds() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Access.ControlTime()
	for i, one := range s.all {
		if one.EndTold || one.Until.IsZero() || now.Before(one.Until) || !s.tellEnd(one, now) {
			continue
		}
		one.EndTold = true
		s.all = slices.Clone(s.all)
		s.all[i] = one // also where the disk does not take it: what is told is a change, and leads here
		if err := s.cfg.Store.PutSender(one); err != nil {
			s.cfg.Log.Error("the owner will be told once more that a sender has ended", "err", err)
		}
	}
}

// tellEnd is false where it could not be told.
func (s *Senders) tellEnd(one store.Sender, now time.Time) bool {
	app, here := s.cfg.Apps.ByID(one.AppID)
	if !here {
		return true
	}
	at := s.cfg.Now().UTC()
	err := s.cfg.Note(agentapi.Notice{At: at, Kind: agentapi.ActivitySenderEnded, App: app.Name}, words.Text{
		words.Of("%[1]s ended for %[2]s. It was until %[3]s.", app.Label, one.Name, agentapi.LastDay(one.Until, now)),
	})
	if err != nil {
		return false
	}
	s.cfg.Activity.Add(agentapi.Activity{
		At: at, Kind: agentapi.ActivitySenderEnded, What: one.Name, App: app.Label, Name: app.Name, Until: one.Until,
	})
	return true
}

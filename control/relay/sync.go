package relay

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
)

// knowsWait is how long what an agent knows may hold up its sync.
const knowsWait = 3 * time.Second

var errSnapshot = errors.New("relay: the snapshot is too large")

// syncing is what a session knows of the sync it carries. What its computer is told are
// bytes here; of several snapshots that wait the newest is told.
type syncing struct {
	ask     *string  // the version of an ask that is not followed yet
	knows   bool     // what that says of the agent: that it knows grants for some apps
	kept    *bool    // what of that is kept, nil for what Authenticate said; of following
	asking  bool     // a goroutine runs following
	stop    func()   // stops what the control plane tells; nil where it tells nothing
	inStep  bool     // what the agent was told is the newest: pongs say so by their date
	telling *telling // some of it is told
	next    *telling
}

// telling is a snapshot to tell, or what else there is to say, in last.
type telling struct {
	rest []byte
	last tunnelwire.Frame
}

// nextFrame takes the next frame, nil where there is none. The session's mu is held.
func (y *syncing) nextFrame() (f *tunnelwire.Frame, more bool) {
	if y.telling == nil {
		y.telling, y.next = y.next, nil
	}
	t := y.telling
	if t == nil {
		return nil, false
	}
	part := t.last
	if len(t.rest) > tunnelwire.MaxPart {
		part = tunnelwire.Frame{Type: tunnelwire.Synced, Part: t.rest[:tunnelwire.MaxPart], More: true}
		t.rest = t.rest[tunnelwire.MaxPart:]
		return &part, true
	}
	part.Part = t.rest
	y.telling = nil
	return &part, y.next != nil
}

// ask has a sync begin, in place of one that is under way.
func (s *session) ask(version string, appGrants bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sync.ask, s.sync.knows, s.sync.inStep = &version, appGrants, false
	s.follow()
}

// follow has what the control plane tells begun anew or stopped, in a goroutine of its
// own if none does that. mu is held.
func (s *session) follow() {
	if !s.sync.asking {
		s.sync.asking = true
		s.relay.wg.Go(s.following)
	}
}

// following has the control plane tell the agent what it asked for last, and nothing more
// when the session is over. What was told before is stopped first, while the ask still
// stands: so say knows that it does not answer that.
func (s *session) following() {
	for {
		s.mu.Lock()
		ask, stop := s.sync.ask, s.sync.stop
		switch {
		case stop != nil && (ask != nil || s.ended):
			s.sync.stop = nil
			s.mu.Unlock()
			stop()
		case ask != nil && !s.ended:
			knows := s.sync.knows
			s.sync.ask = nil
			s.mu.Unlock()
			if err := s.keepKnows(knows); err != nil && !knows {
				s.syncOver(err) // until it asks again it would be given more than it can hold to
				continue
			}
			stop = s.relay.cfg.Sync(s.credential, addrPort(s.conn.RemoteAddr()).Addr(), *ask, s.tellSnapshot, s.syncOver)
			s.mu.Lock()
			s.sync.stop = stop
			s.mu.Unlock()
		default:
			s.sync.asking = false
			s.mu.Unlock()
			return
		}
	}
}

// keepKnows has it kept what the agent knows, where that is news. Before the sync: who is
// told which apps a grant opens does not meet a control plane that thinks it cannot know.
func (s *session) keepKnows(appGrants bool) error {
	kept := s.computer.AppGrants
	if s.sync.kept != nil {
		kept = *s.sync.kept
	}
	if s.relay.cfg.Knows == nil || kept == appGrants {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), knowsWait)
	defer cancel()
	if err := s.relay.cfg.Knows(ctx, s.computer.ID, appGrants); err != nil {
		s.logger().Warn("what an agent knows could not be kept, until it asks again", "err", err)
		return err
	}
	s.sync.kept = &appGrants
	return nil
}

// syncOver is given to Config.Sync.
func (s *session) syncOver(err error) {
	refusal, refused := errors.AsType[*controlapi.Error](err)
	level := slog.LevelWarn
	if refused {
		level = slog.LevelDebug
	}
	s.logger().Log(context.Background(), level, "the sync of a tunnel ended", "err", err)
	s.say(&telling{last: lastWord(err)}, false)
	if refused && refusal.Code == controlapi.CodeUnauthorized {
		s.endCredential(err)
	}
}

// endCredential ends what the session's credential has here, which is not good any more: the
// control plane may not have heard who ended it. What a newer credential of the same
// computer has stays.
func (s *session) endCredential(err error) {
	for _, kicked := range s.relay.routes.kick(s.computer.ID, s.credential) {
		if kicked == s {
			kicked.end(lastWord(err), credentialEnded)
			continue
		}
		kicked.end(credentialEnded)
	}
	s.relay.routes.abort(s.computer.ID, s.credential)
}

// tellSnapshot is given to Config.Sync.
func (s *session) tellSnapshot(snapshot []byte) error {
	if len(snapshot) > tunnelwire.MaxSnapshot {
		return errSnapshot
	}
	s.say(&telling{rest: snapshot, last: tunnelwire.Frame{Type: tunnelwire.Synced, Unchanged: snapshot == nil}}, true)
	return nil
}

func (s *session) say(t *telling, inStep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sync.ask != nil { // which came after what t answers
		return
	}
	s.sync.next, s.sync.inStep = t, inStep
	s.nudge()
}

// lastWord tells the agent why its sync ended.
func lastWord(err error) tunnelwire.Frame {
	f := tunnelwire.Frame{Type: tunnelwire.Synced, Code: controlapi.CodeUnavailable, Message: "The server cannot answer just now."}
	if refusal, ok := errors.AsType[*controlapi.Error](err); ok {
		f.Code, f.Message = refusal.Code, refusal.Message
		f.RetryAfter = int(math.Ceil(refusal.RetryAfter.Seconds()))
	}
	return f
}

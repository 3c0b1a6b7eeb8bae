package relay

import (
	"context"
	"errors"
	"log/slog"
	"math"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
)

var (
	errNoSync   = errors.New("relay: a sync on a connection that carries none")
	errSnapshot = errors.New("relay: the snapshot is too large")
)

// syncing is what a session knows of the sync it carries. What its computer is told are
// bytes here; of several snapshots that wait the newest is told.
type syncing struct {
	ask     *string            // the version of an ask that nobody follows yet
	inStep  bool               // what the agent was told is the newest: pongs say so by their date
	stop    context.CancelFunc // of the one that is followed, or nil
	telling *telling           // some of it is told
	next    *telling
}

// telling is a snapshot to tell, or what else there is to say, in last.
type telling struct {
	rest []byte
	last tunnelwire.Frame
}

// part takes the next frame, nil where there is none. The session's mu is held.
func (y *syncing) part() (f *tunnelwire.Frame, more bool) {
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
func (s *session) ask(version string) {
	s.mu.Lock()
	s.sync.ask, s.sync.inStep = &version, false
	if s.sync.stop != nil {
		s.sync.stop()
	}
	s.mu.Unlock()
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// follow has the control plane tell the agent what it asked for, one ask after the
// other, until ctx ends.
func (s *session) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.asked:
		}
		s.mu.Lock()
		version := s.sync.ask
		if version == nil {
			s.mu.Unlock()
			continue
		}
		following, stop := context.WithCancel(ctx)
		s.sync.ask, s.sync.stop = nil, stop
		s.mu.Unlock()
		err := s.relay.cfg.Sync(following, s.credential, addrPort(s.conn.RemoteAddr()).Addr(), *version, s.tell)
		refusal, refused := errors.AsType[*controlapi.Error](err)
		if following.Err() == nil {
			level := slog.LevelWarn
			if refused {
				level = slog.LevelDebug
			}
			s.log.Log(ctx, level, "the sync of a tunnel ended", "err", err)
			s.say(&telling{last: ended(err)}, false)
		}
		stop()
		if refused && refusal.Code == controlapi.CodeUnauthorized {
			s.dismiss(err)
		}
	}
}

// dismiss ends what the session's credential has here, which is not good any more: the
// control plane may not have heard who ended it. What a newer credential of the same
// computer has stays.
func (s *session) dismiss(err error) {
	for _, kicked := range s.relay.routes.kick(s.computer.ID, s.credential) {
		if kicked == s {
			kicked.end(ended(err), credentialEnded)
			continue
		}
		kicked.end(credentialEnded)
	}
	s.relay.routes.abort(s.computer.ID, s.credential)
}

// tell is given to Config.Sync.
func (s *session) tell(snapshot []byte) error {
	if len(snapshot) > tunnelwire.MaxSnapshot {
		return errSnapshot
	}
	s.say(&telling{rest: snapshot, last: tunnelwire.Frame{Type: tunnelwire.Synced, Unchanged: snapshot == nil}}, true)
	return nil
}

func (s *session) say(t *telling, inStep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sync.next, s.sync.inStep = t, inStep
	s.nudge()
}

// ended tells the agent why its sync ended.
func ended(err error) tunnelwire.Frame {
	f := tunnelwire.Frame{Type: tunnelwire.Synced, Code: controlapi.CodeUnavailable, Message: "The server cannot answer just now."}
	if refusal, ok := errors.AsType[*controlapi.Error](err); ok {
		f.Code, f.Message = refusal.Code, refusal.Message
		f.RetryAfter = int(math.Ceil(refusal.RetryAfter.Seconds()))
	}
	return f
}

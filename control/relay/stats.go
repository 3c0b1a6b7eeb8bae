package relay

import "sync/atomic"

// Stats is what the relay has counted since it was made, and Sessions, Parked,
// Visitors, LetIn and Held of this moment.
type Stats struct {
	Sessions int // control connections
	Extra    int // of those, of computers that have others and came for visitors
	Parked   int // idle data connections
	Visitors int // visits waiting or under way
	LetIn    int // addresses for which places are kept
	Held     int // bytes of heads, and for their answers, at the auth host; in parts of 20 KiB

	Visits      uint64            // joined to a data connection
	BytesUp     uint64            // of finished visits, visitor to agent
	BytesDown   uint64            // of finished visits, agent to visitor
	Retried     uint64            // visits whose first data connection had died
	Unknown     uint64            // visitors for a name that is not here
	TimedOut    uint64            // visitors no data connection came for
	Malformed   uint64            // first bytes that were not understood
	Limited     uint64            // connections closed for a limit
	LimitedBy   map[string]uint64 // the same by the limit's name
	BadTickets  uint64            // data connections refused
	Unauthentic uint64            // control connections refused for their credential
	Deferred    uint64            // control connections put off by the admission ramp

	PassedOn     uint64 // visitors handed to another node
	TakenOver    uint64 // visitors taken over from another node
	AskedToCome  uint64 // times an agent was asked to come to a node that passes its visitors on
	PeerFailures uint64 // nodes that did not answer, and connections of peers refused
}

type counters struct {
	visits, bytesUp, bytesDown, retried, unknown, timedOut atomic.Uint64
	malformed, badTickets, unauthentic, deferredCount      atomic.Uint64
	passedOn, takenOver, peerFailures                      atomic.Uint64
	askedToCome                                            atomic.Uint64
	limited                                                [limits]atomic.Uint64
}

// Stats returns the current numbers.
func (r *Relay) Stats() Stats {
	s := Stats{
		Visits: r.counters.visits.Load(), BytesUp: r.counters.bytesUp.Load(), BytesDown: r.counters.bytesDown.Load(),
		Retried: r.counters.retried.Load(), Unknown: r.counters.unknown.Load(), TimedOut: r.counters.timedOut.Load(),
		Malformed: r.counters.malformed.Load(), BadTickets: r.counters.badTickets.Load(),
		Unauthentic: r.counters.unauthentic.Load(), Deferred: r.counters.deferredCount.Load(),
		PassedOn: r.counters.passedOn.Load(), TakenOver: r.counters.takenOver.Load(), PeerFailures: r.counters.peerFailures.Load() + r.peers.Failures(),
		AskedToCome: r.counters.askedToCome.Load(),
		Visitors:    r.routes.visiting(), LimitedBy: make(map[string]uint64, limits),
	}
	for i, name := range limitNames {
		s.LimitedBy[name] = r.counters.limited[i].Load()
		s.Limited += s.LimitedBy[name]
	}
	for _, session := range r.routes.sessions() {
		s.Sessions++
		if session.extra {
			s.Extra++
		}
		s.Parked += session.parked()
	}
	s.LetIn = r.routes.letInSources()
	s.Held = (r.heads.inside() + r.knownHeads.inside()) * heldPart
	return s
}

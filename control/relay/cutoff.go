package relay

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"
)

// A node that neither the store nor any other node answers is cut off. What it has still
// serves: visitors of the computers whose tunnels are here. So it keeps these for as long
// as they last, because where the network between all nodes fails, each of them is cut
// off, and none could check the credential of an agent that comes from another. Where
// only this node is cut off, its lease ends, and the others send its agents elsewhere.
const (
	// cutOffAfter is how long the store may be silent before the other nodes are asked
	// whether they are there, which happens at every look for them.
	cutOffAfter = 5 * time.Second
	// silentRounds in a row, over silentFor at least, must bring no answer: a failover
	// of the store and a moment in which the others are busy may come together.
	silentRounds = 3
	silentFor    = 10 * time.Second
)

// CutOff says that neither the store nor any other node of this service answers.
func (r *Relay) CutOff() bool { return r.cutOff.Load() }

// ServesNobody says that a visitor who comes here cannot get anywhere: the node is cut
// off, and no computer is connected to it.
func (r *Relay) ServesNobody() bool { return r.CutOff() && len(r.routes.sessions()) == 0 }

// silence is how often in a row nobody answered.
type silence struct {
	mu     sync.Mutex // guards what follows
	rounds int
	since  time.Time
}

// note counts a round, and says whether it has been silent for long enough.
func (s *silence) note(silent bool, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !silent {
		s.rounds = 0
		return false
	}
	if s.rounds++; s.rounds == 1 {
		s.since = now
	}
	return s.rounds >= silentRounds && now.Sub(s.since) >= silentFor
}

// watchOthers keeps CutOff up to date until ctx ends.
func (r *Relay) watchOthers(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.peerTLS.renew()
			r.lookAround(ctx)
		}
	}
}

// lookAround finds out whether this node is cut off.
func (r *Relay) lookAround(ctx context.Context) {
	others := r.directory.unheard(cutOffAfter)
	silent := len(others) > 0 && !r.anyAnswers(ctx, others)
	if ctx.Err() != nil {
		return
	}
	cut := r.silence.note(silent, r.now())
	switch was := r.cutOff.Swap(cut); {
	case was && !cut:
		r.log.Info("this relay is not cut off any more")
	case cut && !was:
		r.log.Warn("neither the database nor any other relay answers: visitors reach only the computers that are connected here, and /livez says 503 while there are none")
	}
}

// unheard are the other nodes known, once the store has been silent for so long.
func (d *directory) unheard(silence time.Duration) []nodeRow {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seenAt.IsZero() || d.now().Sub(d.seenAt) < silence {
		return nil
	}
	return d.others()
}

// anyAnswers asks nodes at the same time, and is done with the first that shows who
// it is. The others are heard to the end: who is cut off in a handshake counts that as
// a failure.
func (r *Relay) anyAnswers(ctx context.Context, nodes []nodeRow) bool {
	answers := make(chan bool, len(nodes))
	for _, node := range nodes {
		r.wg.Go(func() {
			limited, cancel := context.WithTimeout(ctx, peerDial)
			defer cancel()
			answers <- r.greetPeer(limited, node)
		})
	}
	for range nodes {
		if <-answers {
			return true
		}
	}
	return false
}

// greetPeer says whether a node is there, without a visitor.
func (r *Relay) greetPeer(ctx context.Context, node nodeRow) bool {
	raw, err := (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", node.Peer)
	if err != nil {
		return false
	}
	defer raw.Close()
	secure := tls.Client(raw, r.peerTLS.client(node.Node))
	if secure.HandshakeContext(ctx) != nil || secure.SetDeadline(time.Now().Add(peerDial)) != nil {
		return false
	}
	// What it still sends is read, so that it sees an end in order.
	if secure.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, secure)
	}
	return true
}

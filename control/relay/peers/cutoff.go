package peers

import (
	"context"
	"crypto/tls"
	"io"
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
func (p *Peers) CutOff() bool { return p.cutOff.Load() }

// silence is how often in a row nobody answered.
type silence struct {
	rounds int
	since  time.Time
}

// note counts a round, and says whether it has been silent for long enough.
func (s *silence) note(silent bool, now time.Time) bool {
	if !silent {
		s.rounds = 0
		return false
	}
	if s.rounds++; s.rounds == 1 {
		s.since = now
	}
	return s.rounds >= silentRounds && now.Sub(s.since) >= silentFor
}

// watch keeps CutOff up to date until ctx ends, and goes by the secrets as they are.
func (p *Peers) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.keys.renew()
			p.lookAround(ctx)
		}
	}
}

// lookAround finds out whether this node is cut off.
func (p *Peers) lookAround(ctx context.Context) {
	others := p.unheard(cutOffAfter)
	silent := len(others) > 0 && !p.anyAnswers(ctx, others)
	if ctx.Err() != nil {
		return
	}
	cut := p.silence.note(silent, p.cfg.Now())
	switch was := p.cutOff.Swap(cut); {
	case was && !cut:
		p.cfg.Log.Info("this relay is not cut off any more")
	case cut && !was:
		p.cfg.Log.Warn("neither the database nor any other relay answers: visitors reach only the computers that are connected here, and /livez says 503 while there are none")
	}
}

// unheard are the other nodes known, once the store has been silent for so long.
func (p *Peers) unheard(silence time.Duration) []nodeRow {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seenAt.IsZero() || p.cfg.Now().Sub(p.seenAt) < silence {
		return nil
	}
	return p.others()
}

// anyAnswers asks nodes at the same time, and is done with the first that shows who
// it is. The others are heard to the end: who is cut off in a handshake counts that as
// a failure.
func (p *Peers) anyAnswers(ctx context.Context, nodes []nodeRow) bool {
	answers := make(chan bool, len(nodes))
	for _, node := range nodes {
		p.greetings.Go(func() {
			limited, cancel := context.WithTimeout(ctx, peerDial)
			defer cancel()
			answers <- p.greet(limited, node)
		})
	}
	for range nodes {
		if <-answers {
			return true
		}
	}
	return false
}

// greet says whether a node is there, without a visitor.
func (p *Peers) greet(ctx context.Context, node nodeRow) bool {
	raw, err := dialPeer(ctx, node)
	if err != nil {
		return false
	}
	defer raw.Close()
	secure := tls.Client(raw, p.keys.client(node.Node))
	if secure.HandshakeContext(ctx) != nil || secure.SetDeadline(time.Now().Add(peerDial)) != nil {
		return false
	}
	// What it still sends is read, so that it sees an end in order.
	if secure.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, secure)
	}
	return true
}

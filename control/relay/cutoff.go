package relay

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"time"
)

// A node that neither the store nor any other node answers is cut off: visitors of
// computers elsewhere come to nothing here, and those of its own computers come by
// other nodes in vain. It says so to whoever asks, and sends its agents elsewhere.
// Where the store is away and others answer, everything stays where it is.

// cutOffAfter is how long the store may be silent before the other nodes are asked
// whether they are there, which happens at every look for them.
const cutOffAfter = 5 * time.Second

// CutOff says that neither the store nor any other node of this service answers.
func (r *Relay) CutOff() bool { return r.cutOff.Load() }

// watchOthers keeps CutOff up to date until ctx ends.
func (r *Relay) watchOthers(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.lookAround(ctx)
		}
	}
}

// lookAround finds out whether this node is cut off, and hands its agents over when
// it has become so.
func (r *Relay) lookAround(ctx context.Context) {
	others := r.directory.unheard(cutOffAfter)
	cut := len(others) > 0 && !r.anyAnswers(ctx, others)
	if ctx.Err() != nil || cut == r.cutOff.Swap(cut) {
		return
	}
	if !cut {
		r.log.Info("this relay is not cut off any more")
		return
	}
	r.log.Warn("neither the database nor any other relay answers: agents are sent elsewhere, and /livez says 503")
	for _, s := range r.routes.sessions() {
		s.drain()
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

package proxy

import (
	"context"
	"net"
	"net/http"
	"time"

	"porchlight/agent/proxy/gate"
	"porchlight/agent/senders"
)

// ServeByLibrary is Serve with net/http's server reading everything.
func ServeByLibrary(p *Proxy, ctx context.Context, ln net.Listener) error {
	c := p.gate()
	c.ByLibrary = true
	return gate.Serve(ctx, ln, c)
}

// IdleDirect is how many connections to apps the direct way of p keeps for the
// next request.
func IdleDirect(p *Proxy) int {
	p.direct.mu.Lock()
	defer p.direct.mu.Unlock()
	return p.direct.count
}

// Taken is how many requests and WebSockets of visitors are under way in p, and
// how many counts it keeps of them.
func Taken(p *Proxy) (taken, kept int) {
	p.rooms.mu.Lock()
	defer p.rooms.mu.Unlock()
	return p.rooms.taken, len(p.rooms.people) + len(p.rooms.inApp)
}

// Rest has the connections to apps that are kept by the direct way have been idle for so
// long; a negative time is still to come.
func Rest(p *Proxy, idle time.Duration) {
	p.direct.mu.Lock()
	defer p.direct.mu.Unlock()
	for _, k := range p.direct.kept {
		for _, c := range k.idle {
			c.since = time.Now().Add(-idle)
		}
	}
}

// AnsweredTooLate has an app answer a delivery when access has just ended.
func AnsweredTooLate(d *senders.Delivery, status int) error {
	v := &visit{delivery: &delivery{Delivery: d}, ended: true}
	return new(Proxy).modifyResponse(v, nil, &http.Response{StatusCode: status})
}

package proxy

import (
	"context"
	"net"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/upstream"
)

// A port belongs to nobody: when an app ends, a program of any user of this
// computer can listen there next. So the program that took a new connection is looked
// at before a byte goes out on it. Later requests may use the connection without
// another look, because it stays with the program that took it.

// dialApp makes a new connection for the visit that is the context, to its app and
// to nobody else. Where nobody takes it, the app may have moved.
func (p *Proxy) dialApp(ctx context.Context, protocols ...string) (net.Conn, error) {
	v := ctx.Value(visitKey{}).(*visit)
	target := v.vhost.app.Target()
	conn, err := target.Dial(ctx, p.checks(v, target), protocols...)
	if err == nil || p.config.Elsewhere == nil || !upstream.Refused(err) {
		return conn, err
	}
	var now engine.App
	moved := false
	live := v.judge(func() (live bool) {
		moved = p.config.Elsewhere(ctx, v.vhost.app.Name, target)
		now, live = p.lookup(v.vhost.app.Name)
		return live
	})
	if !live || !moved || now.ID != v.vhost.app.ID {
		return nil, err
	}
	target = now.Target()
	return target.Dial(ctx, p.checks(v, target), protocols...)
}

// checks say whether a connection for a visit may carry anything, and have the visit know
// who took it.
func (p *Proxy) checks(v *visit, target upstream.Target) (c upstream.Checks) {
	c.Took = v.took.Store
	if p.config.Welcomes != nil {
		c.Peer = func(peer agentapi.Listener) bool {
			return v.judge(func() bool { return p.config.Welcomes(v.vhost.app.Name, target, peer) })
		}
	}
	if p.config.ShowedKey != nil {
		c.Key = func(key string) bool {
			return v.judge(func() bool { return p.config.ShowedKey(v, v.vhost.app.Name, key) })
		}
	}
	return c
}

// dialFunc dials for the visit that is the context.
type dialFunc = func(ctx context.Context, protocols ...string) (net.Conn, error)

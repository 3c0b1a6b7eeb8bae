package proxy

import (
	"context"
	"errors"
	"net"
	"strconv"
)

// A port belongs to nobody: when an app ends, a program of any user of this
// computer can listen there next. Whoever took a connection is looked at before a
// byte goes out on it; afterwards the connection is theirs, whoever listens then.

var errStranger = errors.New("a program of another user listens on the app's port")

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// pool is what connections to an app are kept by: those to one app are never used
// for another on the same port, nor after the owner approved another user for it.
type pool struct {
	app, user string
	port      int
}

func poolOf(app App) pool { return pool{app.ID, app.User, app.Port} }

// String is a host and port for net/http, which keeps connections by it.
func (p pool) String() string { return p.app + "." + p.user + ":" + strconv.Itoa(p.port) }

var appDialer = &net.Dialer{Timeout: appDialTimeout, KeepAlive: appKeepAlive}

// dialApp makes a new connection for the visit that is the context, to its app and
// to nobody else; network and address are not looked at.
func (p *Proxy) dialApp(ctx context.Context, _, _ string) (net.Conn, error) {
	v := ctx.Value(visitKey{}).(*visit)
	conn, err := appDialer.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(v.at.app.Port))
	if err != nil || p.config.Listener == nil {
		return conn, err
	}
	if !v.judge(p.config.Listener) {
		conn.Close()
		return nil, errStranger
	}
	return conn, nil
}

// judge asks whether the app's listener may have the visit's request. An answer of
// no closes what is open to the app: this visitor, of whom nothing was sent yet,
// still gets a page. What else ends the visit meanwhile ends it after a yes.
func (v *visit) judge(listener func(App) bool) bool {
	v.mu.Lock()
	v.judging++
	v.mu.Unlock()
	may := listener(v.at.app)
	v.mu.Lock()
	v.judging--
	ended := v.ended
	v.mu.Unlock()
	switch {
	case !may:
		v.stranger.Store(true)
		v.cancel()
	case ended:
		v.end()
	}
	return may
}

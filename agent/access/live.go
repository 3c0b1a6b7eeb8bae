package access

import (
	"maps"
	"sync"

	"porchlight/agent/store"
	"porchlight/internal/broadcast"
)

// live is the register of everything open through the proxy. It is one set, without
// an index by person, session, grant or app: every request enters and leaves it, so
// that has to be cheap, while closing is rare and walks a few thousand entries in a
// few milliseconds.
type live struct {
	mu     sync.Mutex
	conns  map[*conn]struct{} // guarded by mu
	perApp map[string]int     // guarded by mu: how many, by app id
	wake   broadcast.Signal   // perApp has changed
}

type conn struct {
	id     Identity
	app    string
	cancel func()
	rests  bool // see Rest
	closed bool // guarded by live.mu
}

// Enter registers a live connection and then decides, in that order: access
// that ends between the two still finds the connection and closes it.
//
// cancel is called at most once, from any goroutine, when access ends; it must
// not block, and may come just after leave has returned. leave must be called
// when the connection has ended, also when the decision refuses.
func (a *Access) Enter(id Identity, appID string, cancel func()) (d Decision, leave func()) {
	c := &conn{id: id, app: appID, cancel: cancel}
	a.live.enter(c)
	if id.BySession() && !a.sessions.unended(id.ended) && !a.sessionExists(id.SessionKey) {
		d = Decision{Reason: ReasonSessionOver}
	} else {
		d = a.Decide(id, appID)
	}
	return d, func() { a.live.leave(c) }
}

// Rest registers a connection that id was let in on, for the time between its
// requests: it ends with their access, and counts as nothing that is open. What holds
// for cancel and leave of Enter holds here, too.
func (a *Access) Rest(id Identity, appID string, cancel func()) (leave func()) {
	c := &conn{id: id, app: appID, cancel: cancel, rests: true}
	a.live.mu.Lock()
	a.live.conns[c] = struct{}{}
	a.live.mu.Unlock()
	if !a.Decide(id, appID).Allowed {
		a.live.close(func(other *conn) bool { return other == c })
	}
	return func() {
		a.live.mu.Lock()
		delete(a.live.conns, c)
		a.live.mu.Unlock()
	}
}

func (l *live) enter(c *conn) {
	l.mu.Lock()
	l.conns[c] = struct{}{}
	l.perApp[c.app]++
	l.mu.Unlock()
	l.wake.Raise()
}

func (l *live) leave(c *conn) {
	l.mu.Lock()
	if _, ok := l.conns[c]; ok {
		delete(l.conns, c)
		if l.perApp[c.app]--; l.perApp[c.app] <= 0 {
			delete(l.perApp, c.app)
		}
	}
	l.mu.Unlock()
	l.wake.Raise()
}

// close cancels every connection for which over is true, and counts those that were
// not closing already and do not rest.
func (l *live) close(over func(*conn) bool) (closed int) {
	var cancels []func()
	l.mu.Lock()
	for c := range l.conns {
		if !c.closed && over(c) {
			c.closed = true
			cancels = append(cancels, c.cancel)
			if !c.rests {
				closed++
			}
		}
	}
	l.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	return closed
}

// CloseApp closes what is open to one app and returns how many connections
// those were. The caller has taken the route away before.
func (a *Access) CloseApp(appID string) int {
	return a.live.close(func(c *conn) bool { return c.app == appID })
}

// closeSession closes what one browser has open.
func (a *Access) closeSession(key store.SessionKey) int {
	return a.live.close(func(c *conn) bool { return c.id.SessionKey == key })
}

// CloseAll closes everything.
func (a *Access) CloseAll() int {
	return a.live.close(func(*conn) bool { return true })
}

// Connections counts what is open now, by app id.
func (a *Access) Connections() map[string]int {
	a.live.mu.Lock()
	defer a.live.mu.Unlock()
	return maps.Clone(a.live.perApp)
}

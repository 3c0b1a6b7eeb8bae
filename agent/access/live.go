package access

import (
	"sync"

	"porchlight/agent/store"
	"porchlight/internal/broadcast"
)

// live is the register of everything open through the proxy. It is one list, without
// an index by person, session, grant or app, nor counts: every request enters and leaves
// it, so that has to be cheap, while closing and counting are rare and walk a few thousand
// entries in a few milliseconds.
type live struct {
	mu   sync.Mutex
	all  map[*Open]struct{} // nil before the first; guarded by mu
	open int                // entries that do not rest; guarded by mu
	wake broadcast.Signal   // something else is open
}

// Open is an entry of the register: something that is open through the proxy. Its zero
// value can be entered, and once Leave said so, entered again.
type Open struct {
	live  *live // nil before the first time
	id    Identity
	app   string
	ender Ender
	rests bool // see Rest

	closed bool // guarded by live.mu
}

// Ender is told when access ends, from any goroutine, first Cut and then End, each at most
// once. Neither may block, and both may come just after leave has returned.
type Ender interface {
	// Cut has the visitor hear of it, and nothing pass any more. together is closed once
	// all who lose access at the same time were cut: what the end costs here waits for
	// that, so that nobody's waits for what another's costs.
	Cut(together <-chan struct{})
	// End ends what is left.
	End()
}

// Cancel is an Ender of which Cut does nothing.
type Cancel func()

func (Cancel) Cut(<-chan struct{}) {}
func (c Cancel) End()              { c() }

// Enter registers a live connection and then decides, in that order: access
// that ends between the two still finds the connection and closes it.
//
// cancel is called at most once, from any goroutine, when access ends; it must
// not block, and may come just after leave has returned. leave must be called
// when the connection has ended, also when the decision refuses.
func (a *Access) Enter(id Identity, appID string, cancel func()) (d Decision, leave func()) {
	o := new(Open)
	return a.EnterAs(o, id, appID, Cancel(cancel)), func() { o.Leave() }
}

// EnterAs is Enter with an entry of the caller's, which costs no memory. Its Leave is
// what leave is.
func (a *Access) EnterAs(o *Open, id Identity, appID string, ender Ender) Decision {
	*o = Open{live: &a.live, id: id, app: appID, ender: ender}
	a.live.enter(o)
	if id.BySession() && !a.sessions.unended(id.ended) && !a.sessionExists(id.SessionKey) {
		return Decision{Reason: ReasonSessionOver}
	}
	if id.Own != "" && !a.state.Load().holds(id.Own, appID) {
		return Decision{Reason: ReasonSessionOver}
	}
	return a.Decide(id, appID)
}

// Rest registers a connection that id was let in on, for the time between its
// requests: it ends with their access, and counts as nothing that is open. What holds
// for cancel and leave of Enter holds here, too.
func (a *Access) Rest(id Identity, appID string, cancel func()) (leave func()) {
	o := &Open{live: &a.live, id: id, app: appID, ender: Cancel(cancel), rests: true}
	a.live.enter(o)
	if !a.Decide(id, appID).Allowed {
		a.live.close(func(other *Open) bool { return other == o })
	}
	return func() { o.Leave() }
}

func (l *live) enter(o *Open) {
	l.mu.Lock()
	if l.all == nil {
		l.all = map[*Open]struct{}{}
	}
	l.all[o] = struct{}{}
	if !o.rests {
		l.open++
	}
	l.mu.Unlock()
	if !o.rests {
		l.wake.Raise()
	}
}

// Leave takes the entry out, any number of times. reusable is true when its Ender was
// not told and never will be: only then may the entry, or its Ender, be
// used for something else.
func (o *Open) Leave() (reusable bool) {
	l := o.live
	l.mu.Lock()
	_, left := l.all[o]
	delete(l.all, o)
	if left && !o.rests {
		l.open--
	}
	reusable = !o.closed
	l.mu.Unlock()
	if left && !o.rests {
		l.wake.Raise()
	}
	return reusable
}

// counts says whether it is somebody's visit that is open.
func (o *Open) counts() bool { return !o.rests && !o.id.Owns() }

// close ends every connection for which ends is true, and counts those that were
// not closing already, do not rest and are not the owner's own.
func (l *live) close(ends func(*Open) bool) (closed int) {
	var enders []Ender
	l.mu.Lock()
	for c := range l.all {
		if !c.closed && ends(c) {
			c.closed = true
			enders = append(enders, c.ender)
			if c.counts() {
				closed++
			}
		}
	}
	l.mu.Unlock()
	together := make(chan struct{})
	for _, e := range enders {
		e.Cut(together)
	}
	close(together)
	for _, e := range enders {
		e.End()
	}
	return closed
}

// CloseApp closes what is open to one app and returns how many connections
// those were. The caller has taken the route away before.
func (a *Access) CloseApp(appID string) int {
	return a.live.close(func(c *Open) bool { return c.app == appID })
}

// closeSession closes what one browser has open.
func (a *Access) closeSession(key store.SessionKey) int {
	return a.live.close(func(c *Open) bool { return c.id.SessionKey == key })
}

// CloseAll closes everything.
func (a *Access) CloseAll() int {
	return a.live.close(func(*Open) bool { return true })
}

// AnyOpen says whether anything is open now. What rests counts as nothing.
func (a *Access) AnyOpen() bool {
	a.live.mu.Lock()
	defer a.live.mu.Unlock()
	return a.live.open > 0
}

// FollowOpen returns what is readable after something was opened or left, until end is called.
func (a *Access) FollowOpen() (opened <-chan struct{}, end func()) { return a.live.wake.Subscribe() }

// Connections counts what visitors have open now, by app id.
func (a *Access) Connections() map[string]int {
	open := map[string]int{}
	a.live.mu.Lock()
	defer a.live.mu.Unlock()
	for c := range a.live.all {
		if c.counts() {
			open[c.app]++
		}
	}
	return open
}

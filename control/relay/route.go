package relay

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"porchlight/control/relay/peers"
)

var (
	errUnknownHost = peers.ErrUnknownHost // here, or at another node
	errKicked      = errors.New("relay: a computer was kicked meanwhile")
	errSuspended   = errors.New("relay: the operator has ended what goes to this computer")
	errFull        = errors.New("relay: too many tunnels")
)

// sessionsPerComputer bounds the control connections of one computer here: an
// agent keeps one, two or three for a moment while it redials.
const sessionsPerComputer = 4

// routes knows which computers are here and who is visiting them.
type routes struct {
	limits Limits

	mu       sync.Mutex // protects what follows, and the fields of every computer
	byHost   map[string]*computer
	byID     map[string]*computer
	away     *computer // stands for all those at other nodes
	visitors int
	tunnels  int               // sessions in all
	extras   map[*session]bool // those of them that leave where there is no room for another
	kicks    uint64            // raised by every kick
	aborted  bool              // by abortAll: no flow begins any more
	quiet    chan struct{}     // closed when the last visitor leaves, if somebody waits
}

// computer is known while it has a session or a visitor.
type computer struct {
	id       string
	host     string     // root host without a port
	sessions []*session // newest first
	visitors *bySource
	letIn    admitted
	flows    map[*flow]*session  // by which session it came, nil for those at other nodes; nil before the first
	came     map[ticketID]*flow  // by which data connection; none for those at other nodes
	passing  map[string]*passing // by the node that passes visitors on to this one

	suspended time.Time   // since when the operator has ended what goes here; zero while they have not
	cutting   *time.Timer // to cut
	cut       bool        // nobody is let through any more
}

func newRoutes(limits Limits) routes {
	return routes{
		limits: limits, byHost: make(map[string]*computer), byID: make(map[string]*computer), extras: make(map[*session]bool),
		away: &computer{visitors: limits.shared(limits.VisitorsPassedOn)},
	}
}

// enter counts one more from source among the computer's visitors, or those of
// them who wait, if there is room.
func (c *computer) enter(among *bySource, source netip.Prefix, now time.Time) bool {
	return among.enterBut(source, c.letIn.spared(source, among.total, now))
}

// learn notes from where a session's computer has let visitors in.
func (t *routes) learn(s *session, addresses []netip.Addr, now time.Time) {
	t.mu.Lock()
	c := t.byID[s.computer.ID]
	t.mu.Unlock()
	if c == nil {
		return
	}
	for _, addr := range addresses {
		c.letIn.note(sourceOfIP(addr), now)
	}
}

// letInSources is how many sources are remembered at all computers together.
func (t *routes) letInSources() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		n += c.letIn.count()
	}
	return n
}

// kickCount is to be read before a credential is looked up, and given to add.
func (t *routes) kickCount() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kicks
}

// add makes s the session visitors are given first and returns those s takes the
// place of, for the caller to end. errKicked says that there was a kick since
// kickCount returned kicks: the credential must be looked up again.
func (t *routes) add(s *session, kicks uint64) (replaced []*session, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kicks != t.kicks {
		return nil, errKicked
	}
	left, ok := t.makeRoom(s)
	if !ok {
		return nil, errFull
	}
	c := t.byID[s.computer.ID]
	if c == nil {
		c = &computer{id: s.computer.ID, visitors: t.limits.shared(t.limits.VisitorsPerComputer)}
		t.byID[c.id] = c
	}
	if c.host != s.host {
		t.unhost(c)
		c.host = s.host
	}
	t.byHost[c.host] = c
	if !c.suspended.Equal(s.computer.Suspended) {
		t.setSuspended(c, s.computer.Suspended, s.relay.cfg.Date())
	}
	for i, old := range c.sessions {
		if old.instance == s.instance || i == sessionsPerComputer-1 {
			replaced = append(replaced, old)
		}
	}
	c.sessions = slices.DeleteFunc(c.sessions, func(old *session) bool { return slices.Contains(replaced, old) })
	c.sessions = slices.Insert(c.sessions, 0, s)
	t.countSessions(1, s)
	t.countSessions(-1, replaced...)
	return append(replaced, left...), nil
}

// countSessions adds sessions to those there are, or takes them off. mu is held.
func (t *routes) countSessions(sign int, sessions ...*session) {
	for _, s := range sessions {
		t.tunnels += sign
		switch {
		case sign < 0:
			delete(t.extras, s)
		case s.extra:
			t.extras[s] = true
		}
	}
}

// remove forgets a session that has ended.
func (t *routes) remove(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(s)
}

// drop is remove for who holds mu.
func (t *routes) drop(s *session) {
	if c := t.byID[s.computer.ID]; c != nil {
		if i := slices.Index(c.sessions, s); i >= 0 {
			c.sessions = slices.Delete(c.sessions, i, i+1)
			t.countSessions(-1, s)
		}
		t.forget(c)
	}
}

// holds says whether a tunnel for a root host is here, and knows the same for a
// server name.
func (t *routes) holds(host string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byHost[host]
	return c != nil && len(c.sessions) > 0
}

func (t *routes) knows(serverName string) bool {
	_, parent, _ := strings.Cut(serverName, ".")
	return t.holds(serverName) || t.holds(parent)
}

// enterAway counts a visitor whose tunnel is at another node; release must be
// called once after it.
func (t *routes) enterAway(source netip.Prefix) (*computer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.visitors >= t.limits.Visitors {
		return nil, overLimit(limitVisitors)
	}
	if !t.away.visitors.enter(source) {
		return nil, overLimit(limitPassedOn)
	}
	t.visitors++
	return t.away, nil
}

// forget drops a computer nobody needs any more. mu is held.
func (t *routes) forget(c *computer) {
	if len(c.sessions) == 0 {
		t.unhost(c)
		if c.visitors.inside() == 0 && t.byID[c.id] == c {
			delete(t.byID, c.id)
		}
	}
}

func (t *routes) unhost(c *computer) {
	if t.byHost[c.host] == c {
		delete(t.byHost, c.host)
	}
}

// enter finds the computer a server name belongs to, its root host or one label
// under it, and counts a visitor; release must be called once after it.
func (t *routes) enter(serverName string, source netip.Prefix, now time.Time) (*computer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byHost[serverName]
	if c == nil {
		_, parent, _ := strings.Cut(serverName, ".")
		c = t.byHost[parent]
	}
	switch {
	case serverName == "" || c == nil:
		return nil, errUnknownHost
	case c.cut:
		return nil, errSuspended
	case t.visitors >= t.limits.Visitors:
		return nil, overLimit(limitVisitors)
	case !c.enter(c.visitors, source, now):
		return nil, overLimit(limitComputer)
	}
	t.visitors++
	return c, nil
}

func (t *routes) release(c *computer, source netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left(c, source)
}

// left counts a visitor out. mu is held.
func (t *routes) left(c *computer, source netip.Prefix) {
	t.visitors--
	c.visitors.release(source)
	t.forget(c)
	if t.visitors == 0 && t.quiet != nil {
		close(t.quiet)
		t.quiet = nil
	}
}

// session is the newest of the computer's, nil when its tunnel is away.
func (t *routes) session(c *computer) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(c.sessions) == 0 {
		return nil
	}
	return c.sessions[0]
}

// join notes that f runs on behalf of c's visitor, given a data connection of s.
// It reports false if s was ended by a kick meanwhile, or the relay has drained.
// s is nil where the tunnel is at another node.
func (t *routes) join(c *computer, s *session, f *flow) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.aborted || c.cut || s != nil && s.kicked {
		return false
	}
	if c.flows == nil {
		c.flows, c.came = make(map[*flow]*session), make(map[ticketID]*flow)
	}
	c.flows[f] = s
	if s != nil {
		c.came[f.ticket.ID()] = f
	}
	return true
}

// unflow forgets what join noted. mu is held.
func (c *computer) unflow(f *flow) {
	delete(c.flows, f)
	delete(c.came, f.ticket.ID())
}

// unjoin ends what join began; the visitor stays.
func (t *routes) unjoin(c *computer, f *flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.unflow(f)
}

// partWith ends what join began, and the visitor's stay.
func (t *routes) partWith(c *computer, f *flow, source netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.unflow(f)
	t.left(c, source)
}

// kick takes a computer's sessions out of the routes and returns them: those of one
// credential, or of each where that is empty.
func (t *routes) kick(id, credential string) (kicked []*session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kicks++
	c := t.byID[id]
	if c == nil {
		return nil
	}
	c.sessions = slices.DeleteFunc(c.sessions, func(s *session) bool {
		s.kicked = s.kicked || s.of(credential)
		if s.kicked {
			kicked = append(kicked, s)
		}
		return s.kicked
	})
	t.countSessions(-1, kicked...)
	t.forget(c)
	return kicked
}

// of says whether the session is of this credential; every one is of an empty one.
func (s *session) of(credential string) bool {
	return credential == "" || s != nil && s.credential == credential
}

// abort ends the visits of a computer that came by sessions as kick names them.
func (t *routes) abort(id, credential string) {
	t.mu.Lock()
	var flows []*flow
	if c := t.byID[id]; c != nil {
		for f, s := range c.flows {
			if s.of(credential) {
				flows = append(flows, f)
			}
		}
	}
	t.mu.Unlock()
	abortEach(flows)
}

// suspendedAfter is how long a computer that is suspended may tell those who are there so,
// before they are cut off.
const suspendedAfter = 10 * time.Second

// suspend has a computer be cut off suspendedAfter since, or not any more where since is
// zero. now is by the same clock as since.
func (t *routes) suspend(id string, since, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kicks++ // a session that is about to begin asks again
	if c := t.byID[id]; c != nil {
		t.setSuspended(c, since, now)
	}
}

// setSuspended is suspend for who holds mu.
func (t *routes) setSuspended(c *computer, since, now time.Time) {
	if c.suspended.Equal(since) {
		return
	}
	if c.cutting != nil {
		c.cutting.Stop()
	}
	c.suspended, c.cutting, c.cut = since, nil, false
	if !since.IsZero() {
		c.cutting = time.AfterFunc(min(since.Add(suspendedAfter).Sub(now), suspendedAfter), func() { t.cutOff(c, since) })
	}
}

// cutOff ends the visits of a computer that is suspended since then, and lets no other begin.
func (t *routes) cutOff(c *computer, since time.Time) {
	t.mu.Lock()
	if !c.suspended.Equal(since) {
		t.mu.Unlock()
		return
	}
	c.cut = true
	flows := slices.Collect(maps.Keys(c.flows))
	t.mu.Unlock()
	abortEach(flows)
}

func abortEach(flows []*flow) {
	for _, f := range flows {
		f.abort()
	}
}

// abortAll ends every visit, those about to begin as well.
func (t *routes) abortAll() {
	t.mu.Lock()
	t.aborted = true
	flows := slices.Collect(maps.Keys(t.away.flows))
	for _, c := range t.byID {
		flows = slices.AppendSeq(flows, maps.Keys(c.flows))
	}
	t.mu.Unlock()
	abortEach(flows)
}

func (t *routes) sessions() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*session
	for _, c := range t.byID {
		all = append(all, c.sessions...)
	}
	return all
}

func (t *routes) visiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.visitors
}

// quietened is closed once no visitor is left.
func (t *routes) quietened() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := make(chan struct{})
	if t.visitors == 0 {
		close(done)
		return done
	}
	t.quiet = done
	return done
}

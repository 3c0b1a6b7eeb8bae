package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
)

const (
	plainPool = iota
	securePool
)

// writeWait bounds the writing of one frame.
const writeWait = 10 * time.Second

// lookAgain is the last part of an agent's time, see heard.
const lookAgain = time.Second

// session is one control connection of an agent that has authenticated. Most are of
// computers that sleep, so what waits is small: one goroutine waits for the agent's next
// frame, on a stack that nothing else has grown, and the one that writes is there while
// there is something to say.
type session struct {
	relay    *Relay
	computer controlapi.Computer
	host     string // root host without a port
	instance string
	conn     *tls.Conn
	key      *tunnelwire.HeaderKey
	log      *slog.Logger
	left     func() bool // has nobody end it with the relay any more

	credential string
	syncs      bool          // the connection carries the sync
	line       *bySource     // visitors waiting for a data connection
	done       chan struct{} // closed by end
	silence    time.Duration // of the agent after which it is given up; who reads owns it

	kicked bool // protected by routes.mu

	mu       sync.Mutex // protects what follows
	pools    [2]pool
	pending  map[ticketID]issued
	arrived  int                // plain data connections so far
	pongs    int                // to be answered
	draining bool               // Drain is to be written
	over     bool               // end was called
	farewell []tunnelwire.Frame // written last
	writing  bool               // somebody runs write, or will
	more     bool               // there is more to write since it last looked
	clock    *time.Timer        // nudges when something is due by the clock; nil until it is needed
	ticking  bool               // clock runs for the next tick
	ticked   bool               // and that has come
	ticks    int
	resting  bool      // see rest
	visited  time.Time // when a visitor last came
	sync     syncing
}

// control admits an agent, and begins to serve its control connection. Until its
// credential is known to be good, it stays counted among the undecided.
func (r *Relay) control(life context.Context, conn *tls.Conn, decided func()) {
	s, err := r.admit(life, conn)
	decided()
	if err != nil {
		_ = conn.Close()
		r.log.Info("control connection refused", "from", conn.RemoteAddr().String(), "err", err)
		return
	}
	s.log.Info("tunnel connected", "from", conn.RemoteAddr().String())
	// One that was admitted while the relay drained has been missed by that.
	s.left = context.AfterFunc(life, func() { s.end() })
	r.wg.Go(s.read)
	s.write()
}

// admit authenticates the agent and adds its session to the routes.
func (r *Relay) admit(life context.Context, conn *tls.Conn) (*session, error) {
	refuse := func(code, message string, retryAfter int, err error) (*session, error) {
		_ = tunnelwire.WriteFrame(conn, tunnelwire.Frame{
			Type: tunnelwire.Refused, Code: code, Message: message, RetryAfter: retryAfter,
		})
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(tunnelwire.HelloWait)); err != nil {
		return nil, err
	}
	state := conn.ConnectionState()
	if state.Version < tls.VersionTLS13 {
		return refuse(tunnelwire.CodeProtocol, "The tunnel needs TLS 1.3.", 0, errors.New("TLS older than 1.3"))
	}
	key, err := state.ExportKeyingMaterial(tunnelwire.ExporterLabel, nil, tunnelwire.KeySize)
	if err != nil {
		return nil, err
	}
	hello, err := tunnelwire.ReadFrame(conn)
	if err != nil {
		return nil, err
	}
	if hello.Type != tunnelwire.Hello || hello.Credential == "" || hello.Instance == "" || len(hello.Instance) > 64 {
		return refuse(tunnelwire.CodeProtocol, "The first frame is not a hello.", 0, errors.New("no hello"))
	}
	ctx, cancel := context.WithTimeout(life, tunnelwire.HelloWait)
	defer cancel()
	for {
		kicks := r.routes.kickCount()
		computer, err := r.cfg.Authenticate(ctx, hello.Credential)
		refusal, _ := errors.AsType[*controlapi.Error](err)
		if refusal != nil && refusal.Code == controlapi.CodeUnauthorized {
			r.counters.unauthentic.Add(1)
			return refuse(tunnelwire.CodeUnauthorized, "This computer's credential is not valid.", 0, err)
		}
		if err != nil {
			wait := 5
			if refusal != nil && refusal.RetryAfter > 0 { // who come together are told to come back apart
				wait = int(math.Ceil(refusal.RetryAfter.Seconds()))
			}
			return refuse(tunnelwire.CodeUnavailable, "The relay cannot check credentials just now.", wait, err)
		}
		host := normalName(controlapi.HostName(computer.Host))
		if host == "" || host == r.cfg.AuthHost {
			return refuse(tunnelwire.CodeUnavailable, "This computer has no address yet.", 30, errors.New("computer without a usable host"))
		}
		s := r.newSession(conn, computer, host, hello, tunnelwire.NewHeaderKey(key))
		replaced, err := r.routes.add(s, kicks)
		if errors.Is(err, errKicked) {
			continue // somebody was kicked while this credential was looked up
		}
		if err != nil {
			r.reached(limitTunnels)
			return refuse(tunnelwire.CodeUnavailable, "The relay has no room for another computer.", 30, err)
		}
		r.touch(host)
		for _, old := range replaced {
			old.end(tunnelwire.Frame{Type: tunnelwire.Refused, Code: tunnelwire.CodeReplaced, Message: "A newer connection of this computer took this one's place."})
		}
		if r.draining.Load() {
			s.drain()
		}
		welcome := tunnelwire.Frame{Type: tunnelwire.Welcome, Node: r.cfg.Node, Host: computer.Host}
		if err := errors.Join(tunnelwire.WriteFrame(conn, welcome), conn.SetDeadline(time.Time{})); err != nil {
			s.end()
			return nil, err
		}
		return s, nil
	}
}

func (r *Relay) newSession(conn *tls.Conn, computer controlapi.Computer, host string, hello tunnelwire.Frame, key *tunnelwire.HeaderKey) *session {
	s := &session{
		relay: r, computer: computer, host: host, instance: hello.Instance, conn: conn, key: key,
		credential: hello.Credential, syncs: conn.ConnectionState().NegotiatedProtocol == controlapi.TunnelSyncALPN,
		log:     r.log.With("computer", computer.ID, "host", host),
		line:    r.cfg.Limits.shared(r.cfg.Limits.WaitingPerComputer),
		done:    make(chan struct{}),
		pending: make(map[ticketID]issued),
		silence: tunnelwire.GiveUpAfter,
		writing: true, // the welcome comes first
		ticked:  true,
	}
	if s.syncs {
		s.silence = tunnelwire.SilenceAsleep
	}
	s.pools[plainPool] = pool{most: r.cfg.Limits.PoolMax}
	if !s.syncs || hello.Visited {
		s.pools[plainPool].wake(r.cfg.Limits.PoolMin)
		s.visited = r.now()
	}
	// Connections inside TLS are opened for a visitor who needs one, not ahead.
	s.pools[securePool] = pool{secure: true}
	return s
}

// read waits for the agent's next frame and handles it, until the connection fails or
// falls silent. A fresh goroutine waits for the one after it: what a frame takes of the
// stack is several times what waiting does, and a stack only shrinks bit by bit.
func (s *session) read() {
	from := &heard{conn: s.conn}
	err := s.conn.SetReadDeadline(time.Now().Add(s.silence - lookAgain))
	var size int
	if err == nil {
		size, err = tunnelwire.AwaitFrame(from)
	}
	if err == nil {
		err = s.readRest(from, size)
	}
	if err != nil {
		s.end()
		s.left()
		s.log.Info("tunnel ended", "err", err)
	}
}

// readRest reads and handles a frame that has begun to come, and has the next one waited
// for.
func (s *session) readRest(from *heard, size int) error {
	f, err := tunnelwire.ReadRest(from, size)
	if err != nil {
		return err
	}
	write, err := s.handle(f)
	if err != nil {
		return err
	}
	s.relay.wg.Go(s.read)
	if write {
		s.write()
	}
	return nil
}

// handle does what a frame asks for. The caller has to write where it says so.
func (s *session) handle(f tunnelwire.Frame) (write bool, err error) {
	switch f.Type {
	case tunnelwire.Ping:
		switch {
		case s.syncs && f.Awake:
			s.silence = tunnelwire.HeardAwake
		case s.syncs:
			s.silence = tunnelwire.SilenceAsleep
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		// A second ping before the first was answered needs no second pong.
		s.pongs = 1
		return s.claim(), nil
	case tunnelwire.Failed:
		s.failed(f.Tickets)
	case tunnelwire.Known:
		s.relay.routes.learn(s, f.Addresses, s.relay.now())
	case tunnelwire.Sync:
		if !s.syncs {
			return false, errNoSync
		}
		s.ask(f.Version)
	}
	return false, nil
}

// heard reads what the agent says. When its time has passed, it looks once more: this
// process, which serves many, may have stood still, and then what they said is there.
type heard struct {
	conn  net.Conn
	again bool // for this frame
}

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.conn.Read(b)
	if n > 0 || h.again || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	h.again = true
	if err := h.conn.SetReadDeadline(time.Now().Add(lookAgain)); err != nil {
		return 0, err
	}
	return h.conn.Read(b)
}

// failed takes back tickets the agent could not use. New ones wait for the next
// tick, so that an agent whose network is down is not asked in a tight loop.
func (s *session) failed(tickets []tunnelwire.Ticket) {
	var ids []ticketID
	s.mu.Lock()
	for _, t := range tickets {
		if entry, ok := s.pending[t.ID()]; ok && entry.ticket.Equal(t) {
			s.forgetTicket(t.ID(), entry)
			entry.pool.paused = true
			ids = append(ids, t.ID())
		}
	}
	s.mu.Unlock()
	s.relay.tickets.strike(ids...)
}

// nudge has what there is to say written. It never blocks; mu is held.
func (s *session) nudge() {
	if s.claim() {
		s.relay.wg.Go(s.write)
	}
}

// claim reports whether the caller is to run write, because nobody does. mu is held.
func (s *session) claim() bool {
	s.more = true
	if s.writing {
		return false
	}
	s.writing = true
	return true
}

// write writes what the session has to say until there is nothing more, or it has ended.
// It is run by one at a time: who claims to.
func (s *session) write() {
	for {
		s.mu.Lock()
		over, ticked := s.over, s.ticked
		s.more, s.ticked = false, false
		farewell := s.farewell
		s.mu.Unlock()
		if over {
			for _, f := range farewell {
				_ = s.send(f)
			}
			_ = s.conn.Close() // ends read
			return
		}
		if ticked {
			s.tick()
		}
		for _, f := range s.compose(ticked) {
			if s.send(f) != nil {
				s.end()
				_ = s.conn.Close()
				return
			}
		}
		if s.pause() {
			return
		}
	}
}

// pause ends a run of write if there is nothing more to say, and sets the clock.
func (s *session) pause() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more || s.over {
		return false
	}
	s.writing = false
	rests, until := s.rest()
	switch {
	case !rests && !s.ticking:
		until, s.ticking = tick, true
	case !rests:
		return true
	case s.clock != nil:
		s.clock.Stop()
		s.ticking = false
	}
	if until > 0 && s.clock == nil {
		s.clock = time.AfterFunc(until, s.strike)
	} else if until > 0 {
		s.clock.Reset(until)
	}
	return true
}

// strike is the clock's.
func (s *session) strike() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.ticking, s.ticked = false, true
	s.nudge()
}

func (s *session) send(f tunnelwire.Frame) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return err
	}
	if err := tunnelwire.WriteFrame(s.conn, f); err != nil {
		return err
	}
	return s.conn.SetWriteDeadline(time.Time{}) // one that stands wakes the process to no end
}

// compose collects the frames that are due, tickets among them.
func (s *session) compose(eager bool) (frames []tunnelwire.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil
	}
	if s.draining {
		s.draining = false
		frames = append(frames, tunnelwire.Frame{Type: tunnelwire.Drain})
	}
	if s.pongs > 0 {
		s.pongs = 0
		pong := tunnelwire.Frame{Type: tunnelwire.Pong}
		if s.sync.inStep {
			pong.Date = s.relay.cfg.Date().Unix()
		}
		frames = append(frames, pong)
	}
	now := s.relay.now()
	var missing []tunnelwire.Ticket
	if eager {
		for id, entry := range s.pending {
			if !entry.reported && now.Sub(entry.at) > missingAfter && len(missing) < tunnelwire.MaxTickets {
				entry.reported = true
				entry.pool.out--
				s.pending[id] = entry
				missing = append(missing, entry.ticket)
			}
		}
	}
	if len(missing) > 0 {
		frames = append(frames, tunnelwire.Frame{Type: tunnelwire.Missing, Tickets: missing, Arrived: s.arrived})
	}
	limits := s.relay.cfg.Limits
	for i := range s.pools {
		p := &s.pools[i]
		n := min(p.demand(eager), 2*limits.PoolMax+limits.WaitingPerComputer-len(s.pending))
		if n <= 0 {
			continue
		}
		tickets := make([]tunnelwire.Ticket, n)
		for i := range tickets {
			tickets[i] = tunnelwire.NewTicket()
			s.pending[tickets[i].ID()] = issued{ticket: tickets[i], pool: p, at: now}
		}
		p.out += n
		s.relay.tickets.enter(s, tickets)
		frames = append(frames, tunnelwire.Frame{Type: tunnelwire.Open, Tickets: tickets, TLS: p.secure})
		if p.demand(eager) > 0 {
			s.nudge() // more than one frame holds
		}
	}
	// One part each time: what visitors need comes in between.
	if part, more := s.sync.part(); part != nil {
		frames = append(frames, *part)
		if more {
			s.nudge()
		}
	}
	return frames
}

// rest says that nothing changes until a visitor comes or the agent speaks: then no
// clock is needed, and an idle computer sleeps. Whoever ends the rest nudges. What a
// computer parks is looked at once more after until, if that is not 0. mu is held.
func (s *session) rest() (rests bool, until time.Duration) {
	s.resting = len(s.pending) == 0
	for i := range s.pools {
		p := &s.pools[i]
		s.resting = s.resting && !p.paused && len(p.waiting) == 0 && p.target == p.least && len(p.idle) == p.target && p.low == p.target
	}
	if s.syncs && s.pools[plainPool].least > 0 {
		until = max(tick, tunnelwire.AsleepAfter-s.relay.now().Sub(s.visited))
	}
	return s.resting, until
}

// tick expires tickets and adapts the pools.
func (s *session) tick() {
	var expired []ticketID
	var surplus []*dataConn
	// Files that wait for a visitor are given back while others find none.
	crowded := s.relay.crowdedLately()
	s.mu.Lock()
	now := s.relay.now()
	for id, entry := range s.pending {
		if now.Sub(entry.at) > tunnelwire.TicketLife {
			s.forgetTicket(id, entry)
			expired = append(expired, id)
		}
	}
	s.ticks++
	// Where files are short, an agent that can sleep does.
	asleep := s.syncs && (crowded || now.Sub(s.visited) >= tunnelwire.AsleepAfter)
	for i := range s.pools {
		s.pools[i].paused = false
		if asleep {
			s.pools[i].sleep()
		}
		if crowded {
			s.pools[i].target, s.pools[i].low = s.pools[i].least, 0
		}
		if crowded || asleep || s.ticks%adaptEvery == 0 {
			surplus = append(surplus, s.pools[i].adapt()...)
		}
	}
	s.mu.Unlock()
	s.relay.tickets.strike(expired...)
	for _, data := range surplus {
		_ = data.Close()
	}
}

// drain tells the agent to connect elsewhere; what is parked here still serves.
func (s *session) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	s.nudge()
}

// end closes the session with what it parks, and lets farewell be written.
// Visits under way are not touched. It may be called often; the first counts.
func (s *session) end(farewell ...tunnelwire.Frame) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over = true
	s.farewell = farewell
	var idle []*dataConn
	for i := range s.pools {
		idle = append(idle, s.pools[i].idle...)
		s.pools[i].idle = nil
	}
	ids := make([]ticketID, 0, len(s.pending))
	for id := range s.pending {
		ids = append(ids, id)
	}
	clear(s.pending)
	if s.clock != nil {
		s.clock.Stop()
	}
	s.nudge()
	if s.syncs {
		s.follow()
	}
	s.mu.Unlock()
	close(s.done)
	s.relay.routes.remove(s)
	s.relay.touch(s.host)
	s.relay.tickets.strike(ids...)
	for _, data := range slices.Backward(idle) {
		_ = data.Close()
	}
}

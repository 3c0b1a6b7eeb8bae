package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/relay/clienthello"
)

const (
	plainPool = iota
	securePool
)

var errBefore = errors.New("an agent of before version 0.1.0, which was told to update")

// lookAgain is the last part of the wait for an agent's next frame, see heard.
const lookAgain = time.Second

// session is one control connection of an agent that has authenticated. Most are of
// computers that sleep, so little waits: one goroutine for the agent's next frame, on a
// stack that nothing has grown. The one that writes (writing.go) is there only while
// there is something to say.
//
// Until ended is set, a goroutine that reads is counted in the relay's wg, so that others
// may be added to it under mu.
type session struct {
	relay    *Relay
	computer controlapi.Computer
	host     string // root host without a port
	instance string
	conn     *tls.Conn
	key      *tunnelwire.HeaderKey

	credential string
	extra      bool          // the agent has others, and came for visitors
	line       *bySource     // visitors waiting for a data connection
	done       chan struct{} // closed by end
	silence    time.Duration // of the agent after which it is given up; who reads owns it

	kicked bool // protected by routes.mu

	mu       sync.Mutex // protects what follows
	pools    [2]pool
	pending  map[ticketID]issued // nil before the first
	arrived  int                 // plain data connections so far
	pinged   bool                // a Pong is to be written
	sent     int64               // what the first Ping that it answers said
	draining bool                // Drain is to be written
	come     []string            // relays for which Come is to be written
	ended    bool                // end was called
	farewell []tunnelwire.Frame  // written last
	writing  bool                // a goroutine runs write, or is about to; stays set once over
	more     bool                // there is something to say since write last looked
	clock    *time.Timer         // calls tickDue; nil until it is needed
	ticking  bool                // clock is set for the next tick
	ticked   bool                // a tick is due, which write makes
	ticks    int
	resting  bool      // see restsUntil
	visited  time.Time // when a visitor last came
	sync     syncing
}

// serveControl admits an agent, and begins to serve its control connection. Until its
// credential is known to be good, it stays counted among the undecided.
func (r *Relay) serveControl(life context.Context, conn *tls.Conn, decided func()) {
	s, err := r.admit(life, conn)
	decided()
	if err != nil {
		_ = conn.Close()
		r.tellRefused(conn, err)
		return
	}
	s.logger().Info("tunnel connected", "from", conn.RemoteAddr().String())
	if life.Err() != nil { // admitted when the relay had ended the others
		s.end()
	}
	r.wg.Go(s.read)
	s.write()
}

// refusalsPerMinute is how many refused control connections the log names in a minute:
// anybody can cause as many as the ramp lets in, and must not fill the operator's disk.
const refusalsPerMinute = 60

func (r *Relay) tellRefused(conn net.Conn, why error) {
	count := r.refusals.Count(r.now())
	if count <= refusalsPerMinute {
		r.log.Info("control connection refused", "from", conn.RemoteAddr().String(), "err", why)
	}
	if count == refusalsPerMinute {
		r.log.Warn("many control connections are refused; further refusals of this minute are not logged")
	}
}

// turnedDown is why an agent is not let in, and the frame that tells it.
type turnedDown struct {
	frame tunnelwire.Frame
	error
}

func turnDown(code, message string, retryAfter int, why error) error {
	return turnedDown{tunnelwire.Frame{Type: tunnelwire.Refused, Code: code, Message: message, RetryAfter: retryAfter}, why}
}

// admit authenticates the agent and adds its session to the routes.
func (r *Relay) admit(life context.Context, conn *tls.Conn) (_ *session, err error) {
	defer func() {
		if no, ok := errors.AsType[turnedDown](err); ok {
			_ = tunnelwire.WriteFrame(conn, no.frame)
		}
	}()
	hello, key, err := readHello(conn)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(life, tunnelwire.HelloWait)
	defer cancel()
	for {
		kicks := r.routes.kickCount()
		computer, host, err := r.authenticate(ctx, hello.Credential)
		if err != nil {
			return nil, err
		}
		s := r.newSession(conn, computer, host, hello, key)
		replaced, err := r.routes.add(s, kicks)
		if errors.Is(err, errKicked) {
			continue // somebody was kicked while this credential was looked up
		}
		if err != nil {
			if !hello.Extra {
				r.reached(limitTunnels)
			}
			return nil, turnDown(tunnelwire.CodeUnavailable, "The relay has no room for another computer.", 30, err)
		}
		r.touch(host)
		r.herd.another()
		for _, old := range replaced {
			old.giveWay(computer)
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

// readHello reads the agent's first frame within HelloWait, and derives the key that the
// headers of its data connections are made with.
func readHello(conn *tls.Conn) (hello tunnelwire.Frame, key *tunnelwire.HeaderKey, err error) {
	if err := conn.SetDeadline(time.Now().Add(tunnelwire.HelloWait)); err != nil {
		return hello, nil, err
	}
	state := conn.ConnectionState()
	if state.Version < tls.VersionTLS13 {
		return hello, nil, turnDown(tunnelwire.CodeProtocol, "The tunnel needs TLS 1.3.", 0, errors.New("TLS older than 1.3"))
	}
	exported, err := state.ExportKeyingMaterial(tunnelwire.ExporterLabel, nil, tunnelwire.KeySize)
	if err != nil {
		return hello, nil, err
	}
	if hello, err = tunnelwire.ReadFrame(conn); err != nil {
		return hello, nil, err
	}
	if hello.Type != tunnelwire.Hello || hello.Credential == "" || hello.Instance == "" || len(hello.Instance) > 64 {
		return hello, nil, turnDown(tunnelwire.CodeProtocol, "The first frame is not a hello.", 0, errors.New("no hello"))
	}
	if state.NegotiatedProtocol != controlapi.TunnelALPN {
		before := controlapi.Outdated()
		return hello, nil, turnDown(tunnelwire.CodeProtocol, before.Message, int(before.RetryAfter.Seconds()), errBefore)
	}
	return hello, tunnelwire.NewHeaderKey(exported), nil
}

// authenticate finds the computer of a credential, and the host it is reached at.
func (r *Relay) authenticate(ctx context.Context, credential string) (computer controlapi.Computer, host string, err error) {
	computer, err = r.cfg.Authenticate(ctx, credential)
	refusal, _ := errors.AsType[*controlapi.Error](err)
	if refusal != nil && refusal.Code == controlapi.CodeUnauthorized {
		r.counters.unauthentic.Add(1)
		return computer, "", turnDown(tunnelwire.CodeUnauthorized, "This computer's credential is not valid.", 0, err)
	}
	if err != nil {
		wait := 5
		if refusal != nil && refusal.RetryAfter > 0 { // who come together are told to come back apart
			wait = int(math.Ceil(refusal.RetryAfter.Seconds()))
		}
		return computer, "", turnDown(tunnelwire.CodeUnavailable, "The relay cannot check credentials just now.", wait, err)
	}
	host = clienthello.HostName(controlapi.HostName(computer.Host))
	if host == "" || host == r.cfg.AuthHost {
		return computer, "", turnDown(tunnelwire.CodeUnavailable, "This computer has no address yet.", 30, errors.New("computer without a usable host"))
	}
	return computer, host, nil
}

// giveWay ends a session whose place went to this computer: its own newer one, or another's.
func (s *session) giveWay(to controlapi.Computer) {
	farewell := tunnelwire.Frame{Type: tunnelwire.Refused, Code: tunnelwire.CodeReplaced, Message: "A newer connection of this computer took this one's place."}
	if s.computer.ID != to.ID {
		farewell.Code, farewell.Message, farewell.RetryAfter = tunnelwire.CodeUnavailable, "The relay needs this place for a computer that comes to stay.", 30
	}
	s.end(farewell)
}

func (r *Relay) newSession(conn *tls.Conn, computer controlapi.Computer, host string, hello tunnelwire.Frame, key *tunnelwire.HeaderKey) *session {
	s := &session{
		relay: r, computer: computer, host: host, instance: hello.Instance, conn: conn, key: key,
		credential: hello.Credential, extra: hello.Extra,
		line:    r.cfg.Limits.shared(r.cfg.Limits.WaitingPerComputer),
		done:    make(chan struct{}),
		silence: tunnelwire.SilenceAsleep,
		writing: true, // the welcome comes first
		ticked:  true,
	}
	s.pools[plainPool] = pool{most: r.cfg.Limits.PoolMax}
	if hello.Visited {
		s.pools[plainPool].wake(r.cfg.Limits.PoolMin)
		s.visited = r.now()
	}
	// Connections inside TLS are opened for a visitor who needs one, not ahead.
	s.pools[securePool] = pool{secure: true}
	return s
}

// logger names the computer. It is made for each line: a computer that sleeps has none to say.
func (s *session) logger() *slog.Logger {
	return s.relay.log.With("computer", s.computer.ID, "host", s.host)
}

// read has the agent's frames handled until the connection fails or falls silent, which ends
// the session. It waits on the smallest stack that Go gives, and handling takes several times
// that: it is done on another one, see deep.go.
func (s *session) read() {
	tcp := tcpUnder(s.conn)
	for came := false; s.relay.deep.heed(s, came); came = true {
		awaitReadable(tcp)
	}
}

// heed handles the frames that are there, one of them at least where something came, and
// says whether more are to be waited for.
func (s *session) heed(came bool) (more bool) {
	for {
		var first []byte
		var err error
		if !came {
			if first, err = ahead(s.conn); err == nil {
				err = s.conn.SetReadDeadline(time.Now().Add(s.silence - lookAgain))
			}
			if err == nil && len(first) == 0 {
				return true
			}
		}
		if err == nil {
			err = s.readFrame(&heard{conn: s.conn, first: first})
		}
		if err != nil {
			s.end()
			s.logger().Info("tunnel ended", "err", err)
			return false
		}
		came = false
	}
}

// ahead takes a byte of what TLS has read beyond the last frame, if there is any, and says
// what is wrong with that, its end too: of neither the socket tells.
func ahead(conn *tls.Conn) (first []byte, err error) {
	var b [1]byte
	if err := conn.SetReadDeadline(longAgo); err != nil {
		return nil, err
	}
	n, err := conn.Read(b[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return b[:n], err
}

// longAgo is a deadline by which nothing is waited for.
var longAgo = time.Unix(1, 0)

// readFrame reads and handles a frame: an agent that sends many has one handled at a time.
func (s *session) readFrame(from *heard) error {
	f, err := tunnelwire.ReadFrame(from)
	if err != nil {
		return err
	}
	write, err := s.handle(f)
	if write && s.writeOnce() {
		s.relay.wg.Go(s.write) // more than one step is not waited for
	}
	return err
}

// handle does what a frame asks for. Where it says so the caller has to run writeOnce.
func (s *session) handle(f tunnelwire.Frame) (write bool, err error) {
	switch f.Type {
	case tunnelwire.Ping:
		s.silence = tunnelwire.SilenceAsleep
		if f.Awake {
			s.silence = tunnelwire.HeardAwake
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.pinged { // a second ping before the first was answered needs no second pong
			s.pinged, s.sent = true, f.Sent
		}
		if s.sync.telling == nil && s.sync.next == nil {
			return s.claim(), nil
		}
		s.nudge()
	case tunnelwire.Failed:
		s.takeBack(f.Tickets)
	case tunnelwire.Known:
		s.relay.routes.learn(s, f.Addresses, s.relay.now())
	case tunnelwire.Aborted:
		s.relay.routes.abortNamed(s, f.Tickets)
	case tunnelwire.Sync:
		s.ask(f.Version, slices.Contains(f.Knows, tunnelwire.KnowsAppGrants))
	}
	return false, nil
}

// heard reads what the agent says. When its time has passed, it looks once more: this
// process, which serves many, may have stood still, and then what they said is there.
type heard struct {
	conn  net.Conn
	first []byte // of this frame, read before
	again bool   // for this frame
}

func (h *heard) Read(b []byte) (int, error) {
	if len(h.first) > 0 {
		n := copy(b, h.first)
		h.first = h.first[n:]
		return n, nil
	}
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

// takeBack takes back tickets the agent could not use: its network is down, or it holds as
// many as it may. So that it is not asked in a tight loop it gets one more for each
// visitor who comes through, and the rest at the next tick; and a pool is no deeper than
// what the agent holds.
func (s *session) takeBack(tickets []tunnelwire.Ticket) {
	var ids []ticketID
	s.mu.Lock()
	for _, t := range tickets {
		if entry, ok := s.pending[t.ID()]; ok && entry.ticket.Equal(t) {
			s.forgetTicket(t.ID(), entry)
			p := entry.pool
			p.paused = true
			p.target = max(p.least, min(p.target, len(p.idle)+p.out))
			ids = append(ids, t.ID())
		}
	}
	s.mu.Unlock()
	s.relay.tickets.strike(ids...)
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
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended = true
	s.farewell = farewell
	var idle []*dataConn
	for i := range s.pools {
		idle = append(idle, s.pools[i].idle...)
		s.pools[i].idle = nil
	}
	ids := slices.Collect(maps.Keys(s.pending))
	clear(s.pending)
	if s.clock != nil {
		s.clock.Stop()
	}
	s.nudge()
	s.follow()
	s.mu.Unlock()
	close(s.done)
	s.relay.routes.remove(s)
	s.relay.touch(s.host)
	s.relay.tickets.strike(ids...)
	for _, data := range slices.Backward(idle) {
		_ = data.Close()
	}
}

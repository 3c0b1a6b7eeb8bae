package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
)

const (
	dialWait  = 10 * time.Second
	writeWait = 10 * time.Second
	// probeWait is how long a relay that is not slow has to answer after Wake.
	probeWait = 3 * time.Second
)

var (
	errDraining = errors.New("the relay is going away")
	errUnlisted = errors.New("the relay is not to be used any more")
)

// refusal is a relay's Refused frame.
type refusal struct{ tunnelwire.Frame }

func (r *refusal) Error() string { return "the relay refused: " + r.Message }

// patient reports whether trying again soon would be of no use.
func (r *refusal) patient() bool {
	return r.Code == tunnelwire.CodeUnauthorized || r.Code == tunnelwire.CodeReplaced || r.Code == tunnelwire.CodeProtocol
}

// after is the wait the relay asked for, bounded.
func (r *refusal) after() time.Duration {
	return min(controlapi.RetryAfter(r.RetryAfter), refusedBackoff)
}

// session is one control connection after Welcome.
type session struct {
	tunnel *Tunnel
	relay  controlapi.Relay
	slot   int
	conn   *tls.Conn
	key    *tunnelwire.HeaderKey
	log    *slog.Logger
	ctx    context.Context // ends with the control connection
	wg     sync.WaitGroup  // data connections until they are handed up
	dials  chan struct{}   // holds one for each dial under way
	places chan struct{}   // holds one for each ticket that has not come to a visitor
	visits *visits         // that came by it; nil where it is not an extra one
	probes chan struct{}   // has room for one: make sure soon that the relay is there
	pongs  chan struct{}   // has room for one: it has answered a ping

	sync   syncing
	opened <-chan struct{} // readable after something was opened, or was done with
	served time.Time       // when something was seen open last; pulse's own, see awake.go
	often  atomic.Bool     // the next ping follows after BeatAwake, and pings say so
	took   time.Duration   // what the last answer took, the welcome at first; read's own, see answered
	slow   atomic.Int64    // how much longer the relay may say nothing because it is slow, in nanoseconds
	due    atomic.Int64    // when the next ping is, in nanoseconds since the tunnel began
	late   atomic.Bool     // a ping was, since the last frame came: see stalled.go

	seeks  chan struct{}       // has room for one: no relay that is connected can carry the sync
	news   chan struct{}       // has room for one: there is something in untold or lost, for tell
	untold []netip.Addr        // let in, and the relay does not know; guarded by tunnel.mu
	lost   []tunnelwire.Ticket // of visits aborted, and the relay may not know; likewise

	telling  bool                  // it was told of some, and has not answered since; guarded by tunnel.mu
	draining bool                  // the relay asked to be left; guarded by tunnel.mu
	why      atomic.Pointer[error] // that it was ended by us, see quit
	signs    int                   // that plain data connections do not get through; guarded by tunnel.mu
	proven   bool                  // one has got through; guarded by tunnel.mu

	writing sync.Mutex // held while a frame is written
}

// session connects to relay and serves it until the connection ends; the error
// says why.
func (t *Tunnel) session(ctx context.Context, slot int, relay controlapi.Relay) error {
	w, err := t.handed(slot), error(nil)
	if w == nil {
		t.mu.Lock()
		instance := t.instanceOf(slot, t.moves[slot])
		t.mu.Unlock()
		if w, err = t.open(ctx, relay, instance, slot >= slots); err != nil {
			return err
		}
	}
	conn, key, host := w.conn, w.key, w.host
	defer conn.Close()
	// Only a deadline or a close ends a read.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := t.claimNode(slot, w.node); err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	s := &session{
		tunnel: t, relay: relay, slot: slot, conn: conn, key: key, ctx: life,
		log:    t.log.With("relay", relay.Address),
		dials:  make(chan struct{}, dialsAtOnce),
		probes: make(chan struct{}, 1),
		pongs:  make(chan struct{}, 1),
		news:   make(chan struct{}, 1),
		seeks:  make(chan struct{}, 1),
		sync:   syncing{answers: make(chan answer, 1)},
		took:   w.took,
	}
	s.answered(w.took)
	s.places, s.visits = t.roomOf(slot)
	opened, unfollow := t.cfg.Opened()
	defer unfollow()
	s.opened = opened
	t.setSession(slot, s)
	s.log.Info("connected to the relay", "host", host, "extra", s.extra())
	t.yield()
	first := s.nextPing()
	s.wg.Go(func() { s.pulse(first) })
	if s.extra() {
		s.wg.Go(s.idle)
	} else {
		s.wg.Go(s.home)
	}
	err = s.read()
	if why := s.why.Load(); why != nil {
		err = *why
	}
	t.setSession(slot, nil)
	end()
	_ = conn.Close()
	s.wg.Wait()
	return err
}

// welcomed is a control connection whose relay has welcomed this computer.
type welcomed struct {
	relay controlapi.Relay
	conn  *tls.Conn
	key   *tunnelwire.HeaderKey
	host  string // the name the relay routes here
	node  string
	took  time.Duration // from hello to welcome
}

// open connects to relay, as an extra one or not, and waits to be welcomed.
func (t *Tunnel) open(ctx context.Context, relay controlapi.Relay, instance string, extra bool) (*welcomed, error) {
	conn, err := t.connect(ctx, relay, t.reachWait(), controlapi.TunnelALPN)
	if err != nil {
		return nil, err
	}
	// Only a deadline or a close ends a read.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	w := &welcomed{relay: relay, conn: conn}
	err = t.greet(w, instance, extra)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return w, nil
}

// connect opens a TLS connection to relay for one protocol. Its address must answer within
// reach.
func (t *Tunnel) connect(ctx context.Context, relay controlapi.Relay, reach time.Duration, protocol string) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	reaching, reached := context.WithTimeout(ctx, reach)
	conn, err := t.dial(reaching, relay)
	reached()
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{
		ServerName: relay.ServerName,
		RootCAs:    t.cfg.RootCAs,
		NextProtos: []string{protocol},
		MinVersion: tls.VersionTLS13, // its exporter is bound to the whole handshake
	}
	if protocol == tunnelwire.DataALPN { // one for each visitor, whom a ticket of the tunnel's admits
		conf.ClientSessionCache = t.resumes
	}
	secure := tls.Client(conn, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("agree on TLS with the relay: %w", err)
	}
	if got := secure.ConnectionState().NegotiatedProtocol; got != protocol {
		_ = secure.Close()
		return nil, fmt.Errorf("what answers at the relay's address does not speak %s", protocol)
	}
	return secure, nil
}

func (t *Tunnel) dial(ctx context.Context, relay controlapi.Relay) (net.Conn, error) {
	began := time.Now()
	conn, err := t.cfg.Dial(ctx, "tcp", relay.Address)
	if err != nil {
		return nil, fmt.Errorf("reach the relay: %w", err)
	}
	t.measured(relay, time.Since(began))
	if tcp, ok := conn.(*net.TCPConn); ok {
		tune(tcp)
	}
	return conn, nil
}

// greet authenticates on a new control connection, and notes what the relay answers.
func (t *Tunnel) greet(w *welcomed, instance string, extra bool) error {
	conn := w.conn
	if err := conn.SetDeadline(time.Now().Add(tunnelwire.HelloWait)); err != nil {
		return err
	}
	state := conn.ConnectionState()
	material, err := state.ExportKeyingMaterial(tunnelwire.ExporterLabel, nil, tunnelwire.KeySize)
	if err != nil {
		return fmt.Errorf("derive the tunnel's key: %w", err)
	}
	began := time.Now()
	err = tunnelwire.WriteFrame(conn, tunnelwire.Frame{
		Type:       tunnelwire.Hello,
		Credential: t.cfg.Credential(),
		Instance:   instance,
		Extra:      extra,
		Visited:    t.visitedLately(),
	})
	if err != nil {
		return fmt.Errorf("say hello to the relay: %w", err)
	}
	f, err := tunnelwire.ReadFrame(conn)
	switch {
	case err != nil:
		return fmt.Errorf("wait for the relay's welcome: %w", err)
	case f.Type == tunnelwire.Refused:
		return &refusal{f}
	case f.Type != tunnelwire.Welcome:
		return fmt.Errorf("the relay answered %q instead of a welcome", f.Type)
	}
	w.key, w.host, w.node, w.took = tunnelwire.NewHeaderKey(material), f.Host, f.Node, time.Since(began)
	return conn.SetDeadline(time.Time{})
}

// read handles the relay's frames until the connection ends.
func (s *session) read() error {
	for {
		s.late.Store(false)
		if err := s.listen(); err != nil {
			return err
		}
		f, err := tunnelwire.ReadFrame(&heard{session: s})
		if err != nil {
			return fmt.Errorf("the connection to the relay ended: %w", err)
		}
		switch f.Type {
		case tunnelwire.Open:
			if err := s.openData(f.Tickets, f.TLS); err != nil {
				return err
			}
		case tunnelwire.Missing:
			s.missing(len(f.Tickets), f.Arrived)
		case tunnelwire.Pong:
			s.pong(f)
		case tunnelwire.Synced:
			if err := s.synced(f); err != nil {
				return err
			}
		case tunnelwire.Drain:
			if err := s.drained(); err != nil {
				return err
			}
		case tunnelwire.Come:
			s.tunnel.come(f.Relay)
		case tunnelwire.Refused:
			return &refusal{f}
		}
		if !s.tunnel.listed(s.relay) {
			return errUnlisted
		}
	}
}

// openData opens a data connection for each ticket, and gives back those that are
// too many: a relay decides how much it asks for, but not how much we hold.
func (s *session) openData(tickets []tunnelwire.Ticket, secure bool) error {
	for i, ticket := range tickets {
		select {
		case s.places <- struct{}{}:
			s.wg.Go(func() {
				defer func() { <-s.places }()
				s.data(ticket, secure)
			})
		default:
			return s.send(tunnelwire.Frame{Type: tunnelwire.Failed, Tickets: tickets[i:]})
		}
	}
	return nil
}

// pulse pings until the session ends, for the first time after first, and at the same
// moments as the other slot's session: the processor wakes up once for both.
func (s *session) pulse(first time.Duration) {
	next := time.NewTimer(first)
	defer next.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.news:
			if s.tell() != nil {
				_ = s.conn.Close() // ends read
				return
			}
			continue
		case <-next.C:
			if s.overdue() {
				s.late.Store(true)
			}
			next.Reset(s.nextPing())
		case <-s.wakes():
			s.serves()
			next.Reset(s.nextPing())
		case <-s.probes:
			// Any frame read afterwards moves the deadline on again.
			_ = s.conn.SetReadDeadline(time.Now().Add(s.probeWait()))
		}
		if s.ping() != nil {
			_ = s.conn.Close() // ends read
			return
		}
	}
}

func (s *session) send(f tunnelwire.Frame) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.write(f)
}

// write is called with writing held.
func (s *session) write(f tunnelwire.Frame) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return err
	}
	if err := tunnelwire.WriteFrame(s.conn, f); err != nil {
		return err
	}
	return s.conn.SetWriteDeadline(time.Time{}) // one that stands wakes the process to no end
}

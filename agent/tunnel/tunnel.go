// Package tunnel keeps this computer reachable: it dials relays, keeps a control
// connection to up to two of them, and to others while visitors come there, opens the
// data connections they ask for, and gives the visitors who come through them to
// whoever accepts from its Listener.
//
// A data connection waits in silence until the relay sends a PROXY header with a
// visitor's address. The header must carry a code made with the keying material
// of that relay's control connection over the same ticket that the data connection was
// opened with; until it has been verified nothing is passed up. Behind it are the
// visitor's own bytes, TLS which ends in the agent: a relay sees only who connects
// to which name.
//
//	tunnel.go   New, Run, the two slots that dial
//	choice.go   which relay a slot dials, and when it leaves one for another
//	extra.go    the relays that it comes to besides
//	session.go  one control connection, drained.go when its relay asks to be left,
//	            sync.go the snapshots that come by it
//	awake.go    how often it beats, by who visits, and stalled.go when it could not
//	data.go     data connections, verification
//	listener.go what visitors come out of, and aborted.go when a relay cannot hear that one
//	            was cut off
package tunnel

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/internal/filelimit"
	"porchlight/internal/socket"
)

const (
	// slots is how many relays a computer is connected to at a time.
	slots = 2
	// Waiting between attempts is anything up to a bound, which doubles from
	// firstBackoff to lastBackoff, and only to deferredBackoff where a relay is there and takes
	// in so many a second: the last ones are not to wait when it has room again. A credential
	// that was refused is tried again after anything up to refusedBackoff.
	firstBackoff    = 250 * time.Millisecond
	lastBackoff     = 30 * time.Second
	deferredBackoff = 8 * time.Second
	refusedBackoff  = 2 * time.Minute
	// steadyAfter is how long a connection must last for the next to be dialled
	// as the first was.
	steadyAfter = 10 * time.Second
	// lookEvery is how often a slot that has no relay to dial looks again while none is
	// connected.
	lookEvery = 5 * time.Second
)

// Config of a Tunnel. Relays, Credential, Open and Opened are required.
type Config struct {
	// Relays lists the relays in order of preference; two are used, and the others
	// where those do not answer or are far. It is asked again whenever one is to be
	// dialled, so it may change; Relist makes a change count.
	Relays func() []controlapi.Relay
	// Last is where the control plane itself takes a tunnel, dialled where no listed relay
	// can be reached or none is known; zero for nowhere.
	Last controlapi.Relay
	// Credential is the device credential; empty means that there is none yet.
	Credential func() string
	// RootCAs that a relay's certificate must lead to; nil means the system's.
	RootCAs *x509.CertPool
	// OnContact is told that the control plane answered by a control connection, and how
	// far its clock is at least ahead of this computer's; nil for not. See Sync.
	OnContact func(ahead time.Duration)
	// Near says that the relay is this process, from which no silence comes: nothing
	// beats often.
	Near bool
	// Open says whether visitors have something open, and Opened returns what is readable
	// after one opened something or was done with it, until it is told to end: while
	// something is open the relays are asked every second whether they are there.
	Open   func() bool
	Opened func() (opened <-chan struct{}, end func())
	// Files is how many files this process may have open; what the system says when zero.
	Files int
	// Allowed says whether a relay at that address may be dialled, after names were looked
	// up; nil for everywhere.
	Allowed func(ctx context.Context, address netip.Addr) error
	// Dial opens TCP connections; nil means controlapi.DialWith, and by Allowed.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	Log  *slog.Logger
	Now  func() time.Time
}

// Tunnel is made by New and works while Run runs. Its methods are safe for
// concurrent use.
type Tunnel struct {
	cfg      Config
	log      *slog.Logger
	now      func() time.Time
	listener *socket.Handed
	running  atomic.Bool
	instance string // random, of this run of the program
	began    time.Time

	resumes tls.ClientSessionCache // data connections inside TLS, by the relays' names

	comes  chan controlapi.Relay // that ask for an extra session, see keepExtras
	failed chan error            // has room for one: why no slot is connected, for Sync

	homeAfter, farBy time.Duration // see there

	mu        sync.Mutex                        // protects what follows
	inUse     [slots + extras]*controlapi.Relay // by the slots, and behind them by the extra sessions
	nodes     [slots + extras]string            // what the relays connected call themselves
	next      [slots]*welcomed                  // left to a slot whose session ends for it
	moves     [slots + extras]int               // how often that was
	visits    [extras]*visits
	known     map[controlapi.Relay]*tried
	sessions  [slots + extras]*session // connected ones
	changed   chan struct{}            // closed and replaced at each change
	woken     chan struct{}            // closed and replaced by stir
	list      []controlapi.Relay       // at the last Relist
	secureFor map[string]time.Time     // until when data connections with a relay run inside TLS, by its address
	admitted  map[netip.Addr]time.Time // from where visitors were let in, and when last told
	visited   time.Time                // when a visitor last came, by the clock that only runs on
	aborted   []aborted                // visits, the oldest first
}

// New checks cfg and starts nothing.
func New(cfg Config) (*Tunnel, error) {
	if cfg.Relays == nil || cfg.Credential == nil || cfg.Open == nil || cfg.Opened == nil {
		return nil, errors.New("tunnel: Relays, Credential, Open and Opened are required")
	}
	if cfg.Dial == nil {
		cfg.Dial = controlapi.DialWith(dialer(cfg.Allowed))
	}
	if cfg.Files <= 0 {
		cfg.Files = filelimit.Limit()
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnContact == nil {
		cfg.OnContact = func(time.Duration) {}
	}
	return &Tunnel{
		cfg:       cfg,
		log:       cfg.Log,
		now:       cfg.Now,
		listener:  socket.NewHanded(),
		instance:  rand.Text(),
		began:     time.Now(),
		changed:   make(chan struct{}),
		woken:     make(chan struct{}),
		known:     make(map[controlapi.Relay]*tried),
		resumes:   tls.NewLRUClientSessionCache(slots + extras),
		comes:     make(chan controlapi.Relay, extras),
		failed:    make(chan error, 1),
		homeAfter: homeAfter,
		farBy:     farBy,
		secureFor: make(map[string]time.Time),
		admitted:  make(map[netip.Addr]time.Time),
	}, nil
}

// Run keeps the connections until ctx ends and then closes them, data
// connections that wait for a visitor and the Listener included; visitors that
// were accepted are left to whoever accepted them. It returns nil and can be
// called once.
func (t *Tunnel) Run(ctx context.Context) error {
	if !t.running.CompareAndSwap(false, true) {
		return errors.New("tunnel: Run was called before")
	}
	defer t.listener.Close()
	var wg sync.WaitGroup
	for slot := range slots {
		wg.Go(func() { t.keep(ctx, slot) })
	}
	wg.Go(func() { t.keepExtras(ctx) })
	wg.Wait()
	return nil
}

// Listener is where visitors arrive: connections as the visitor opened them,
// with the visitor's address as RemoteAddr and the address it connected to as
// LocalAddr, and a CloseWrite method. It is one and the same at every call;
// closing it turns visitors away.
func (t *Tunnel) Listener() net.Listener { return t.listener }

// Connected reports whether visitors can come in: at least one relay has welcomed us.
func (t *Tunnel) Connected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.sessions[:], func(s *session) bool { return s != nil })
}

// Changes returns a channel that is closed at the next change of Connected or of
// the relays connected. Call it before reading Connected, and again after each
// change.
func (t *Tunnel) Changes() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// Wake says that the network may be another one, or that the computer woke up. Relays are
// dialled at once, whatever they asked for, and connections that stand are made sure of.
func (t *Tunnel) Wake() {
	t.mu.Lock()
	clear(t.secureFor) // another network may pass what the last one did not
	for _, k := range t.known {
		k.until, k.firmly, k.fails = time.Time{}, false, 0
	}
	t.mu.Unlock()
	t.stir()
}

// Relist says that the control plane answered, and that the list of relays may have
// changed. What relays asked for holds on. A computer that is connected looks only at
// another list, and some time within lookEvery: all computers are told of it together.
func (t *Tunnel) Relist() {
	list := t.cfg.Relays()
	t.mu.Lock()
	same := slices.Equal(list, t.list)
	t.list = list
	t.mu.Unlock()
	switch {
	case !t.Connected():
		t.stir()
	case !same:
		time.AfterFunc(jitter(lookEvery), t.stir)
	}
}

// stir has everybody who waits look again.
func (t *Tunnel) stir() {
	t.mu.Lock()
	close(t.woken)
	t.woken = make(chan struct{})
	sessions := t.sessions
	t.mu.Unlock()
	for _, s := range sessions {
		if s != nil {
			broadcast.Raise(s.probes)
		}
	}
}

func (t *Tunnel) wakeups() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.woken
}

// keep keeps one slot connected, to a relay the other slot is not using. A relay that
// does not answer or refuses is left for another at once; only who goes round in a
// circle waits longer and longer.
func (t *Tunnel) keep(ctx context.Context, slot int) {
	defer func() {
		if w := t.handed(slot); w != nil {
			_ = w.conn.Close()
		}
	}()
	backoff := firstBackoff
	for ctx.Err() == nil {
		woken := t.wakeups()
		relay, wait, ok := t.pick(slot)
		switch {
		case !ok:
			t.rest(ctx, woken)
			continue
		case wait > 0:
			if sleep(ctx, woken, wait) {
				backoff = firstBackoff
			}
			continue
		}
		started := time.Now()
		err := t.session(ctx, slot, relay)
		t.release(slot)
		if ctx.Err() != nil {
			return
		}
		lasted := time.Since(started)
		t.note(relay, err, lasted)
		t.tellFailed(err)
		if lasted >= steadyAfter {
			backoff = firstBackoff
		}
		refused, wasRefused := errors.AsType[*refusal](err)
		level := slog.LevelWarn
		switch {
		case errors.Is(err, errBetter):
			wait, level = 0, slog.LevelInfo // it has been welcomed there
		case wasRefused && refused.patient():
			wait = refused.after() + jitter(refusedBackoff)
		case t.another(slot):
			wait = jitter(firstBackoff)
		default:
			if controlapi.Deferred(err) {
				backoff = min(backoff, deferredBackoff)
			}
			wait = jitter(backoff)
			backoff = min(2*backoff, lastBackoff)
		}
		t.log.Log(ctx, level, "not connected to the relay", "relay", relay.Address, "err", err, "again", wait.Round(time.Millisecond))
		if sleep(ctx, woken, wait) {
			backoff = firstBackoff
		}
	}
}

// rest waits until a slot that has none may find a relay to dial. While the other slot
// is connected only a Wake brings one, or the end of that connection; nobody looks.
func (t *Tunnel) rest(ctx context.Context, woken <-chan struct{}) {
	changed := t.Changes()
	if t.Connected() {
		select {
		case <-ctx.Done():
			return
		case <-woken:
			return
		case <-changed:
		}
	}
	sleep(ctx, woken, jitter(lookEvery))
}

// instanceOf tells the connections of a slot, or an extra one, apart: one that is opened
// beside another must not take its place where both relays are one node. mu is held.
func (t *Tunnel) instanceOf(slot, moves int) string {
	return t.instance + "/" + strconv.Itoa(slot) + "/" + strconv.Itoa(moves)
}

func (t *Tunnel) release(slot int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse[slot], t.nodes[slot] = nil, ""
}

// listed reports whether relay is still to be used.
func (t *Tunnel) listed(relay controlapi.Relay) bool {
	return relay == t.cfg.Last || slices.Contains(t.cfg.Relays(), relay)
}

// setSession notes that slot is connected (or not, with nil) and raises the change.
func (t *Tunnel) setSession(slot int, s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions[slot] = s
	if s != nil {
		t.forgetFailed()
		s.tellOf(t.letInLately()...)
		s.tellAborted(t.abortedLately()...)
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// jitter is anything up to bound, so that agents which lost a relay together do
// not come back together.
func jitter(bound time.Duration) time.Duration { return mrand.N(bound) }

// sleep waits and reports whether it was woken.
func sleep(ctx context.Context, woken <-chan struct{}, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-woken:
		return true
	}
	return false
}

func dialer(allowed func(context.Context, netip.Addr) error) *net.Dialer {
	d := &net.Dialer{KeepAliveConfig: keepAlive}
	if allowed != nil {
		d.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			addr, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return allowed(ctx, addr.Addr())
		}
	}
	return d
}

// keepAlive notices a peer that went away without a word within 45 s, and keeps
// parked connections known to the routers in between.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3}

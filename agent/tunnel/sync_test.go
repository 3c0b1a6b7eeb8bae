package tunnel_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/control/relay"
	"porchlight/test/programs"
)

// plane is the control plane of one relay: it tells the snapshot that the test set.
type plane struct {
	mu      sync.Mutex
	tells   map[int]func([]byte) error // of the syncs under way
	asked   []string                   // with which versions
	current controlapi.Snapshot
	end     chan error // ends a sync with that
	lost    error      // every sync ends with that, and each new one; nil for none
}

func newPlane(version string) *plane {
	return &plane{tells: map[int]func([]byte) error{}, current: controlapi.Snapshot{Version: version}, end: make(chan error)}
}

func (p *plane) config(c *relay.Config) { c.Sync = p.sync }

func (p *plane) sync(credentialSent string, _ netip.Addr, version string, tell func([]byte) error, over func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.tell(ctx, credentialSent, version, tell); ctx.Err() == nil {
			over(err)
		}
	}()
	return func() { cancel(); <-ended }
}

func (p *plane) tell(ctx context.Context, credentialSent, version string, tell func([]byte) error) error {
	if credentialSent != credential {
		return errors.New("a wrong credential")
	}
	p.mu.Lock()
	id := len(p.asked)
	p.asked = append(p.asked, version)
	if p.lost != nil {
		defer p.mu.Unlock()
		return p.lost
	}
	p.tells[id] = tell
	var first []byte
	if p.current.Version != version {
		first, _ = json.Marshal(p.current)
	}
	err := tell(first)
	p.mu.Unlock()
	defer func() { p.mu.Lock(); delete(p.tells, id); p.mu.Unlock() }()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-p.end:
		return err
	}
}

// set has every sync told s.
func (p *plane) set(s controlapi.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = s
	b, _ := json.Marshal(s)
	for _, tell := range p.tells {
		_ = tell(b)
	}
}

// lose has the plane's store gone.
func (p *plane) lose() {
	away := &controlapi.Error{Code: controlapi.CodeUnavailable, Message: "Not now."}
	p.mu.Lock()
	p.lost = away
	under := len(p.tells)
	p.mu.Unlock()
	for range under {
		p.end <- away
	}
}

func (p *plane) syncs() (now, ever int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.tells), len(p.asked)
}

// next is the next answer to a sync.
func (w *world) next(version string) controlapi.Snapshot {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), wait)
	defer cancel()
	var got controlapi.Snapshot
	if err := w.tunnel.Sync(ctx, version, func(s controlapi.Snapshot) error { got = s; return nil }); err != nil {
		w.t.Fatalf("sync: %v; log:\n%s", err, w.log)
	}
	return got
}

// With its first sync it says that it knows grants for some apps.
func TestSaysThatItKnowsGrantsForSomeApps(t *testing.T) {
	t.Parallel()
	p := newPlane("1")
	said := make(chan bool, 10)
	w := start(t, options{relay: func(c *relay.Config) {
		p.config(c)
		c.Knows = func(_ context.Context, computerID string, knows bool) error {
			said <- knows && computerID == "computer-1"
			return nil
		}
	}})
	w.next("")
	if !<-said {
		t.Error("it says something else")
	}
}

func TestSyncOverTheTunnel(t *testing.T) {
	t.Parallel()
	p := newPlane("1")
	w := start(t, options{relay: p.config})
	if got := w.next(""); got.Version != "1" || got.Unchanged {
		t.Fatalf("%+v", got)
	}
	// Many frames, between which a visitor comes and goes.
	large := controlapi.Snapshot{Version: "2", Undelivered: []string{strings.Repeat("x", 1<<20)}}
	p.set(large)
	if err := echo(w.mustVisit("maya.localhost"), []byte("meanwhile")); err != nil {
		t.Error(err)
	}
	if got := w.next("1"); got.Version != "2" || len(got.Undelivered) != 1 || got.Undelivered[0] != large.Undelivered[0] {
		t.Errorf("version %q with %d", got.Version, len(got.Undelivered))
	}
	if _, ever := p.syncs(); ever != 1 {
		t.Errorf("asked %d times", ever)
	}
	// What the relay refuses is told, and asked again.
	p.end <- &controlapi.Error{Code: controlapi.CodeUnavailable, Message: "Not now.", RetryAfter: time.Second}
	err := w.tunnel.Sync(t.Context(), "2", nil)
	refusal, ok := errors.AsType[*controlapi.Error](err)
	if !ok || refusal.Code != controlapi.CodeUnavailable || refusal.Message != "Not now." || refusal.RetryAfter != time.Second {
		t.Errorf("%+v", err)
	}
	if got := w.next("2"); !got.Unchanged || got.Version != "2" {
		t.Errorf("%+v", got)
	}
	// The newest of several counts.
	p.set(controlapi.Snapshot{Version: "3"})
	p.set(controlapi.Snapshot{Version: "4"})
	for got := "2"; got != "4"; {
		got = w.next(got).Version
	}
}

// pair are two relays, connected, and which of them carries the sync.
type pair struct {
	*world
	carries, other *plane
	relays         map[*plane]*relay.Relay
}

func startPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{relays: map[*plane]*relay.Relay{}}
	var addresses []string
	for _, name := range []string{"first", "second"} {
		plane := newPlane("1")
		r, addr, _ := startRelay(t, "127.0.0.1:0", nil, func(c *relay.Config) { plane.config(c); c.Node = name })
		p.relays[plane] = r
		addresses = append(addresses, addr)
	}
	p.world = start(t, options{tunnel: func(c *tunnel.Config) { c.Relays = listOf(addresses...) }})
	p.next("")
	for plane, r := range p.relays {
		programs.Eventually(t, "both relays are connected", func() bool { return r.Stats().Sessions == 1 })
		if now, _ := plane.syncs(); now == 1 {
			p.carries = plane
		} else {
			p.other = plane
		}
	}
	if p.carries == nil || p.other == nil {
		t.Fatal("both relays carry it, or none")
	}
	programs.Eventually(t, "the tunnel, too, has both", func() bool {
		return strings.Count(p.log.String(), `msg="connected to the relay"`) == 2
	})
	return p
}

// Of two relays one carries the sync. Where one tells what is not believed the other one
// is asked, and visitors go on by both: a node whose store is of before is a good relay.
func TestOneRelayCarriesTheSync(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	not := errors.New("not believed")
	refuse := func() {
		t.Helper()
		if err := p.tunnel.Sync(t.Context(), "1", func(controlapi.Snapshot) error { return not }); !errors.Is(err, not) {
			t.Fatal(err)
		}
	}
	changes := p.tunnel.Changes()
	p.carries.set(controlapi.Snapshot{Version: "stale"})
	refuse()
	if got := p.next("1"); !got.Unchanged {
		t.Errorf("%+v", got)
	}
	if now, _ := p.other.syncs(); now != 1 {
		t.Errorf("the other one carries %d", now)
	}
	// The store of both is of before, and goes on telling of it.
	p.other.set(controlapi.Snapshot{Version: "stale"})
	for n := range 20 {
		refuse()
		stale := controlapi.Snapshot{Version: "stale", Undelivered: []string{strings.Repeat("x", n<<10)}}
		p.carries.set(stale)
		p.other.set(stale)
	}
	select {
	case <-changes:
		t.Errorf("a connection was left; log:\n%s", p.log)
	default:
	}
	for _, r := range p.relays {
		if n := r.Stats().Sessions; n != 1 {
			t.Errorf("%d sessions", n)
		}
	}
	// What is believed again is taken.
	p.carries.set(controlapi.Snapshot{Version: "2"})
	p.other.set(controlapi.Snapshot{Version: "2"})
	for got := "1"; got != "2"; {
		got = p.next(got).Version
	}
}

// A relay that cannot carry the sync just now, because its node ends or does not reach
// the store, hands it to the other one: only when both cannot is it an error, and neither
// is asked in a circle.
func TestTheOtherRelayCarriesTheSync(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	away := &controlapi.Error{Code: controlapi.CodeUnavailable, Message: "Not now."}
	p.carries.end <- away
	if got := p.next("1"); !got.Unchanged {
		t.Errorf("%+v", got)
	}
	if now, _ := p.other.syncs(); now != 1 {
		t.Errorf("the other one carries %d", now)
	}
	// One that ends before anybody waits for it has the first one asked anew.
	waiting := &awaited{Context: t.Context(), by: make(chan struct{})}
	go func() {
		<-waiting.by
		p.other.end <- away
	}()
	if err := p.tunnel.Sync(waiting, "1", nil); !unavailable(err) {
		t.Errorf("where both cannot: %v", err)
	}
	_, first := p.carries.syncs()
	if _, second := p.other.syncs(); first != 1 || second != 1 {
		t.Errorf("asked %d and %d times", first, second)
	}
}

// awaited is a context that says when somebody begins to wait for its end.
type awaited struct {
	context.Context
	once sync.Once
	by   chan struct{}
}

func (a *awaited) Done() <-chan struct{} {
	a.once.Do(func() { close(a.by) })
	return a.Context.Done()
}

func unavailable(err error) bool {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	return ok && refusal.Code == controlapi.CodeUnavailable
}

// A computer that nobody visits parks nothing, so it costs its relay one file. Its next
// visitor waits for a round trip, and from then on it parks as ever, also at a relay it
// comes back to.
func TestSleepingComputerParksNothing(t *testing.T) {
	t.Parallel()
	p := newPlane("1")
	w := start(t, options{relay: p.config})
	w.next("")
	if n := w.relay.Stats().Parked; n != 0 {
		t.Fatalf("it parks %d", n)
	}
	visit := func() time.Duration {
		began := time.Now()
		conn := w.mustVisit("maya.localhost")
		programs.Must(t, echo(conn, []byte("hello")))
		return time.Since(began)
	}
	first := visit()
	programs.Eventually(t, "it is awake", func() bool { return w.relay.Stats().Parked >= 4 })
	t.Logf("the first visitor took %v, the next one %v", first, visit())
	w.stopRelay()
	w.connected(false)
	r, _, _ := startRelay(t, w.addr, nil, p.config)
	w.tunnel.Wake()
	programs.Eventually(t, "it parks at once where it had visitors", func() bool { return r.Stats().Parked >= 4 })
}

// Package health keeps how each app does: one value an app, which window, menu bar,
// command line and doctor show alike.
//
// In come the agent's own question (a probe: one GET / to an approved app, or what a
// client of MCP sends first, see probe.go), what visitors met, and whether anybody listens. Out comes an
// agentapi.AppHealth. Nothing is sent before the owner has approved, to anybody but
// the approved listener, or while the owner has the setting off. It never changes an
// option, decides nothing about access, and forgets with the process.
package health

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/upstream"
	"porchlight/internal/broadcast"
	"porchlight/internal/words"
)

const (
	// pause is the least time between two probes of an app that nothing of the
	// owner's asks for.
	pause = time.Minute
	// pauseTaught is the least time between two probes of an app that what it answered to
	// visitors asks for.
	pauseTaught = 10 * time.Minute
	// remembered is how long the last failure that a visitor met is told after the app
	// answered again.
	remembered = time.Hour
	// atOnce is how many probes run beside each other.
	atOnce = 8
	// turnFor is how much longer than a probe may take whoever waits for it does: a
	// moment for its turn.
	turnFor = 500 * time.Millisecond
)

// asked is an app that visitors can open, as it is asked.
type asked struct {
	engine.App
	host string // the public one, with the port unless it is 443
}

// same says whether two are asked the same. A key that an app shows is kept when it is
// asked first, and makes no other question.
func (a asked) same(b asked) bool {
	ours, theirs := a.Target(), b.Target()
	ours.Key, theirs.Key = "", ""
	return a.ID == b.ID && a.host == b.host && ours == theirs && a.Options == b.Options
}

// toldAddress says whether the app is told its public address.
func (a asked) toldAddress() bool { return a.Options.PublicAddress || a.Options.Forwarded }

// Config of New. Fields without a remark are required.
type Config struct {
	// Find returns an approved app by its id, and Root is where they all are.
	Find func(id string) (engine.App, bool)
	Root func() engine.Root
	// Welcomes, ShowedKey and Elsewhere are the engine's: who may be asked in an app's
	// place, and whether one that nobody listens for is found elsewhere, where Find says
	// by the time it returns.
	Welcomes  func(name string, target upstream.Target, peer agentapi.Listener) bool
	ShowedKey func(ctx context.Context, name, key string) bool
	Elsewhere func(ctx context.Context, name string, dead upstream.Target) bool
	// Socket is the number of the socket that listens where an app is, another one after
	// it was started again; 0 where there is none to be had.
	Socket func(target upstream.Target) uint64
	// On says whether apps may be asked.
	On func() bool
	// Changes is raised when the health of an app changed; nil when nobody follows.
	Changes *broadcast.Signal
	Now     func() time.Time // time.Now when nil
	Log     *slog.Logger     // discarded when nil
}

// Health is safe for concurrent use.
type Health struct {
	cfg  Config
	wake chan struct{} // has one when apps may be due

	// askFor and bodyFor outside the tests.
	askFor, bodyFor time.Duration

	mu   sync.Mutex
	apps map[string]*entry    // by id, of live apps only; guarded by mu
	gone map[string]time.Time // by id: when apps that are not on now were asked last; guarded by mu

	awaited atomic.Int64 // apps whose next answer to a visitor is news; written while mu is held
}

// entry is what is known of one app. Health.mu guards it.
type entry struct {
	probed  verdict // of the last probe, or what has shown since that it is otherwise
	met     verdict // what a visitor met after that; none: zero
	suspect verdict // what a visitor met at one page, until the first page is asked for; none: zero
	learnt  learnt
	hinted  bool // told of by Hint, since something about it changed
	awaits  bool // its next answer to a visitor is news
	last    *agentapi.AppError
	well    time.Time     // when it answered after that; zero: not yet
	taught  time.Time     // when visitors' answers last had the app asked
	asked   time.Time     // when a probe last reached the app
	renamed time.Time     // when another address last had it asked at once
	about   asked         // what that probe asked
	socket  uint64        // and of whom
	due     time.Time     // when the next probe is; zero: none
	running bool          // a probe
	done    chan struct{} // closed when the probe that is due or running ended; nil: none
}

// verdict is what one look at an app said.
type verdict struct {
	state  agentapi.Health
	detail string
	said   words.Text     // detail, to be said in another language
	option map[string]any // never changed
	vain   bool           // it is told its address, and does not know it
	status int            // of a first page that is an error; 0: none
	note   bool           // it answers, and visitors do not get what they came for
	mcp    bool           // it answers, and this is about its MCP
	unseen bool           // no look at who listens shows that nobody answers
	at     time.Time
}

// New starts nothing; see Run.
func New(cfg Config) *Health {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Health{
		cfg: cfg, wake: make(chan struct{}, 1), askFor: askFor, bodyFor: bodyFor,
		apps: map[string]*entry{}, gone: map[string]time.Time{},
	}
}

// Of is how an app does, as far as is known.
func (h *Health) Of(id string) agentapi.AppHealth {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.apps[id]
	if e == nil {
		return agentapi.AppHealth{}
	}
	v := e.shown()
	out := agentapi.AppHealth{
		Health: v.state, Ailment: ailments[v.state], HealthDetail: v.detail, HealthWords: v.said, HealthOption: v.option,
		HealthStatus: v.status, HealthNote: v.note, HealthMCP: v.mcp,
	}
	if e.well.IsZero() || h.cfg.Now().Sub(e.well) < remembered {
		out.LastError = e.last
	}
	if v.state != agentapi.HealthUnknown {
		out.HealthAt = new(v.at.UTC())
	}
	return out
}

func (e *entry) shown() verdict {
	v := e.probed
	if e.met.state != agentapi.HealthUnknown && !e.explained() {
		v = e.met
	}
	return e.learnt.added(v)
}

// explained says whether the probe has found the reason of what a visitor met, and
// what helps: that an app broke off says less than that it speaks HTTPS.
func (e *entry) explained() bool {
	known := e.probed.option != nil && e.probed.state != agentapi.HealthAnswers
	return known && (e.met.state == agentapi.HealthWrong || e.met.state == agentapi.HealthSilent)
}

// find returns an app that visitors can open: live, not paused, with an address.
func (h *Health) find(id string) (asked, bool) {
	app, ok := h.cfg.Find(id)
	root := h.cfg.Root().Host
	return asked{app, app.Name + "." + root}, ok && app.Live && !app.Paused && root != ""
}

// on says whether an app is approved and on, paused or not.
func (h *Health) on(id string) (engine.App, bool) {
	app, ok := h.cfg.Find(id)
	return app, ok && app.Status == agentapi.StatusLive
}

// await notes whether the next answer of an app to a visitor is news. mu is held.
func (h *Health) await(e *entry, news bool) {
	switch {
	case news && !e.awaits:
		h.awaited.Add(1)
	case !news && e.awaits:
		h.awaited.Add(-1)
	}
	e.awaits = news
}

// entryOf returns what is known of a live app, made where there is none. mu is held.
func (h *Health) entryOf(id string) *entry {
	e := h.apps[id]
	if e == nil {
		e = &entry{asked: h.gone[id]}
		delete(h.gone, id)
		h.apps[id] = e
	}
	return e
}

// Ask has an app asked because of something the owner did: approving it, changing
// its options, giving it another address.
func (h *Health) Ask(id string) { h.request(id, true) }

// Changed has an app asked because a program changed who listens for it: not sooner
// than a minute after it was asked last.
func (h *Health) Changed(id string) { h.request(id, false) }

// Renamed has an app asked because the computer got another address: at once, before
// the first visitor comes by it, but for one whose address changed within the last
// minute too. The control plane gives addresses, and could have no end of them.
func (h *Health) Renamed(id string) {
	h.mu.Lock()
	now, e := h.cfg.Now(), h.apps[id]
	first := e == nil || e.renamed.IsZero() || now.Sub(e.renamed) >= pause
	h.mu.Unlock()
	h.request(id, first)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.apps[id]; e != nil && first {
		e.renamed = now
	}
}

func (h *Health) request(id string, owner bool) {
	app, ok := h.find(id)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entryOf(id)
	e.hinted = false // what is there now may know its address
	e.learnt.options(app, e.shown())
	if owner {
		h.schedule(e, 0)
	} else {
		h.schedule(e, pause)
	}
}

// schedule has Run ask an app, not sooner than a time after it was asked last, if the
// owner wants that of any. mu is held.
func (h *Health) schedule(e *entry, after time.Duration) {
	if !h.cfg.On() {
		return
	}
	due := h.cfg.Now()
	if next := e.asked.Add(after); !e.asked.IsZero() && next.After(due) {
		due = next
	}
	if e.due.IsZero() || due.Before(e.due) {
		e.due = due
	}
	if e.done == nil {
		e.done = make(chan struct{})
	}
	broadcast.Raise(h.wake)
}

// Await returns how an app does, once a probe that is due or under way has ended; at
// the latest a moment after it has to.
func (h *Health) Await(ctx context.Context, id string) agentapi.AppHealth {
	h.mu.Lock()
	var done chan struct{}
	if e := h.apps[id]; e != nil && (e.running || !e.due.IsZero() && !e.due.After(h.cfg.Now())) {
		done = e.done
	}
	h.mu.Unlock()
	if done != nil {
		ctx, cancel := context.WithTimeout(ctx, h.askFor+turnFor)
		defer cancel()
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	return h.Of(id)
}

// Probe is Await for somebody who wants to know now: it has the app asked, but for
// one that was less than a minute ago and is still the same.
func (h *Health) Probe(ctx context.Context, id string) agentapi.AppHealth {
	if app, ok := h.find(id); ok && h.cfg.On() && h.stale(app) {
		h.Ask(id)
	}
	return h.Await(ctx, id)
}

// stale says whether what is known of an app is too old to be told.
func (h *Health) stale(app asked) bool {
	socket := h.cfg.Socket(app.Target())
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.apps[app.ID]
	switch {
	case e == nil, !e.about.same(app), e.socket != socket:
		return true
	case e.running:
		return false
	}
	return !h.cfg.Now().Before(e.asked.Add(pause))
}

// Gone forgets an app that is not on any more, but for when it was asked: it would be
// asked each time that it comes back. Of one that is on all the same, paused or at another
// port, what is known is kept until the next answer.
func (h *Health) Gone(id string) {
	_, on := h.on(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if on {
		e := h.entryOf(id)
		e.hinted = false
		h.await(e, true)
		return
	}
	now := h.cfg.Now()
	maps.DeleteFunc(h.gone, func(_ string, asked time.Time) bool { return now.Sub(asked) >= pause })
	e := h.apps[id]
	if e == nil {
		return
	}
	if e.running {
		e.asked = now
	}
	if !e.asked.IsZero() {
		h.gone[id] = e.asked
	}
	h.await(e, false)
	e.end()
	delete(h.apps, id)
}

// end tells whoever waits that there is nothing to wait for. mu is held.
func (e *entry) end() {
	if e.done != nil {
		close(e.done)
		e.done = nil
	}
}

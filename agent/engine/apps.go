// Package engine keeps the apps that local programs publish: who asked, what the
// owner decided, what is live.
//
// An event (a program's request, an owner's decision) comes in; Next says what
// follows; the outcome is stored durably, then the snapshot that the proxy reads
// is swapped, then the connections of an app that is gone are closed, then the
// caller is answered. The package knows nothing of HTTP, and it decides which
// apps there are, never who may open them.
package engine

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/broadcast"
)

// Limits of what programs on this computer can have stored.
const (
	maxPending  = 300
	maxApproved = 500 // the control plane takes no longer list
)

// Root is the address everything is published under; both are empty while this
// computer has none.
type Root struct {
	Name string // the customer's short name
	Host string // root host, with the port unless it is 443
}

// AppsConfig of NewApps. Fields without a remark are required.
type AppsConfig struct {
	Store *store.Store
	Root  func() Root
	// OwnPorts are ports of Porchlight itself.
	OwnPorts func() []int
	// AskAgain has an approved app whose port changed wait for the owner again;
	// nil for not.
	AskAgain func() bool
	// Listener says who listens on a local port, which may take a while; last is
	// the process that was seen there before, 0 for none.
	Listener func(port, last int) agentapi.Listener
	// ListenerUser says it quickly, without the program where that is not known
	// already. socket is the number of the socket, another one for every other
	// socket, and 0 where there is none to be had. When nil it is Listener, without
	// numbers.
	ListenerUser func(port int) (l agentapi.Listener, socket uint64)
	// Answers says whether anybody takes connections on a local port; nil for
	// nobody. It is asked where Listener names no user.
	Answers func(port int) bool
	// Listens says quickly whether anybody listens on a local port; nil for
	// always.
	Listens func(port int) bool
	// Own says whether a user, by the system's own id, counts as the one the agent
	// runs as; nil for none. Me is that one.
	Own func(userID string) bool
	Me  store.ListenerUser
	// UserName is what the system calls a user, by its own id; nil for the id.
	UserName func(userID string) string
	// OnGone closes what is open to an app, after its route is gone.
	OnGone func(appID string) agentapi.Closed
	// Changes is raised after anything changed; nil when nobody follows it.
	Changes *broadcast.Signal
	Now     func() time.Time // time.Now when nil
	Log     *slog.Logger     // discarded when nil
}

// App is a published app or a request for one.
type App struct {
	ID      string // random, from the first approval on
	Name    string
	Label   string
	Port    int
	Status  agentapi.Status
	Paused  bool // closed to everybody by the owner
	Options agentapi.AppOptions
	Formers []string // ids of the apps that had the name before
	User    string   // whose programs it was approved for, by the system's own id; empty when not known

	folded string     // Label as labels are compared
	kept   *store.App // what this was made of; never changed
}

// Apps is safe for concurrent use.
type Apps struct {
	cfg   AppsConfig
	shown atomic.Pointer[shown] // replaced while mu is held, never changed

	mu      sync.Mutex
	rows    map[string]Row       // guarded by mu
	formers map[string][]string  // guarded by mu; see App.Formers
	notices []agentapi.Notice    // guarded by mu, oldest first
	seen    uint64               // guarded by mu: id of the newest the owner has seen
	silent  map[string]struct{}  // guarded by mu: ids of apps that did not answer a visitor
	dead    map[string]struct{}  // guarded by mu: ids of apps whose port nobody listens on
	asked   map[string]time.Time // guarded by mu: when names asked aloud, see remember

	lookFor time.Duration // lookFor outside the tests

	looking   sync.Mutex // one look at all ports at a time
	lookedAt  time.Time  // guarded by looking: when it ended
	lookedAll *shown     // guarded by looking: the apps it was for

	looked sync.Map  // name → uint64: the socket last given to Run to look at
	looks  chan look // for Run
}

// NewApps reads the stored apps. It starts nothing.
func NewApps(cfg AppsConfig) (*Apps, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ListenerUser == nil {
		cfg.ListenerUser = func(port int) (agentapi.Listener, uint64) { return cfg.Listener(port, 0), 0 }
	}
	kept, err := cfg.Store.Apps()
	if err != nil {
		return nil, err
	}
	a := &Apps{cfg: cfg, rows: map[string]Row{}, formers: kept.Formers, notices: kept.Notices, silent: map[string]struct{}{}, dead: map[string]struct{}{}, asked: map[string]time.Time{},
		lookFor: lookFor, looks: make(chan look, maxLooks)}
	for name, app := range kept.Apps {
		a.rows[name] = Row{App: &app}
	}
	for name, denial := range kept.Denials {
		a.rows[name] = Row{App: a.rows[name].App, Denial: &denial}
	}
	a.swap()
	return a, a.readSeen()
}

// Publish is PublishBy for a program of the agent's own user.
func (a *Apps) Publish(ctx context.Context, req agentapi.PublishRequest) (agentapi.Publication, error) {
	return a.PublishBy(ctx, Caller{}, req)
}

// PublishBy carries out POST /publish: pending the first time, live at once for
// a name that was approved before.
func (a *Apps) PublishBy(ctx context.Context, by Caller, req agentapi.PublishRequest) (agentapi.Publication, error) {
	if err := checkName(req.Name, a.cfg.Root()); err != nil {
		return agentapi.Publication{}, err
	}
	label, err := cleanLabel(req.Label)
	if err != nil {
		return agentapi.Publication{}, err
	}
	if err := checkPort(req.LocalPort, a.cfg.OwnPorts()); err != nil {
		return agentapi.Publication{}, err
	}
	e := Event{Kind: Publish, By: by, Label: label, Port: req.LocalPort}
	var socket uint64
	e.Listener, e.Listening, socket = a.glance(req.LocalPort)
	out, err := a.apply(ctx, req.Name, e)
	if err != nil {
		return agentapi.Publication{}, err
	}
	if e.Listener.UserID != "" && e.Listener.Program == "" {
		a.lookLater(look{req.Name, req.LocalPort, socket})
	}
	return a.publication(out.App), nil
}

// Get carries out GET /publish/:name.
func (a *Apps) Get(name string) (agentapi.Publication, error) {
	a.mu.Lock()
	app := a.rows[name].App
	a.mu.Unlock()
	if app == nil {
		return agentapi.Publication{}, agentapi.Errorf(agentapi.CodeNotFound, "Nothing is published under this name.")
	}
	return a.publication(app), nil
}

// Withdraw is WithdrawBy for a program of the agent's own user.
func (a *Apps) Withdraw(ctx context.Context, name string) (agentapi.Publication, error) {
	return a.WithdrawBy(ctx, Caller{}, name)
}

// WithdrawBy carries out DELETE /publish/:name: the route goes, an approval stays.
func (a *Apps) WithdrawBy(ctx context.Context, by Caller, name string) (agentapi.Publication, error) {
	if _, err := a.apply(ctx, name, Event{Kind: Withdraw, By: by}); err != nil {
		return agentapi.Publication{}, err
	}
	return agentapi.Publication{Status: agentapi.StatusRevoked}, nil
}

// Approve gives an app that asked its address, whatever it asks by now.
func (a *Apps) Approve(ctx context.Context, name string) (agentapi.Publication, error) {
	return a.ApproveAs(ctx, name, agentapi.Approval{})
}

// ApproveSeen is Approve for an owner who looked at the request: it is refused
// with CodeConflict when the request is not what was seen any more.
func (a *Apps) ApproveSeen(ctx context.Context, name string, seen *agentapi.Seen) (agentapi.Publication, error) {
	return a.ApproveAs(ctx, name, agentapi.Approval{Seen: seen})
}

// ApproveAs is both, and may take the app from everybody else who could open it.
func (a *Apps) ApproveAs(ctx context.Context, name string, how agentapi.Approval) (agentapi.Publication, error) {
	if err := checkName(name, a.cfg.Root()); err != nil {
		// The short name can have become the name of a request made before.
		return agentapi.Publication{}, err
	}
	e := Event{Kind: Approve, NewID: newID(), Seen: how.Seen, Alone: how.Alone, Me: a.cfg.Me}
	if app, ok := a.Lookup(name); ok && app.Status == agentapi.StatusPending {
		e.Port = app.Port
		e.Listener, e.Listening = a.lookSoon(ctx, name, app.Port)
	}
	out, err := a.apply(ctx, name, e)
	if err != nil {
		if agentapi.CodeOf(err) == agentapi.CodeConflict {
			a.noteListener(ctx, name, e) // so that looking again shows who listens by now
		}
		return agentapi.Publication{}, err
	}
	return a.publication(out.App), nil
}

// Deny refuses an app that asked; see Event for what it may do next.
func (a *Apps) Deny(ctx context.Context, name string) error {
	_, err := a.apply(ctx, name, Event{Kind: Deny})
	return err
}

// Revoke forgets the approval.
func (a *Apps) Revoke(ctx context.Context, name string) (agentapi.Closed, error) {
	return a.end(ctx, name, Revoke)
}

// Unmute has the owner hear of the name again.
func (a *Apps) Unmute(ctx context.Context, name string) error {
	_, err := a.apply(ctx, name, Event{Kind: Unmute})
	return err
}

func (a *Apps) end(ctx context.Context, name string, kind Kind) (agentapi.Closed, error) {
	out, err := a.apply(ctx, name, Event{Kind: kind})
	if err != nil {
		return agentapi.Closed{}, err
	}
	return out.closed, nil
}

// outcome of apply.
type outcome struct {
	Outcome
	closed agentapi.Closed
}

// apply is the one way a row changes: decide, store, swap, close, tell.
func (a *Apps) apply(ctx context.Context, name string, e Event) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{}, agentapi.Errorf(agentapi.CodeUnavailable, "The request was given up before anything was changed.")
	}
	began := time.Now()
	e.At = a.cfg.Now()
	out, changed, err := a.decide(name, e)
	if err != nil {
		return outcome{}, err
	}
	done := outcome{Outcome: out, closed: agentapi.Closed{OK: true}}
	if out.Gone != "" {
		done.closed = a.cfg.OnGone(out.Gone)
		done.closed.Milliseconds = int(time.Since(began).Milliseconds())
	}
	if changed {
		a.cfg.Log.Info("published app", "name", name, "event", string(e.Kind), "connections_closed", done.closed.Closed)
		a.cfg.Changes.Raise()
	}
	return done, nil
}

func (a *Apps) decide(name string, e Event) (out Outcome, changed bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.rows[name]
	e.LabelTaken = a.labelTaken(name, now, e)
	e.PortTaken = now.App != nil && slices.Contains(a.cfg.OwnPorts(), now.App.LocalPort)
	e.AskedLately = e.At.Before(a.asked[name].Add(askAgainAfter))
	e.AskAgain = a.cfg.AskAgain != nil && a.cfg.AskAgain()
	e.Own = a.cfg.Own
	if out, err = Next(now, e); err != nil {
		return out, false, err
	}
	if out.App != nil && out.App.Name == "" { // new; one that stays is being read
		out.App.Name = name
	}
	if err := a.checkRoom(now, out, e.By); err != nil {
		return Outcome{Row: now}, false, err
	}
	if reflect.DeepEqual(out.Row, now) && len(out.Notices) == 0 {
		return out, false, nil
	}
	former := formerOf(now.App, out.App)
	notices, err := a.cfg.Store.ChangeApp(store.AppChange{Name: name, App: out.App, Denial: out.Denial, Notices: out.Notices, Former: former})
	if err != nil {
		a.cfg.Log.Error("cannot store a published app", "name", name, "err", err)
		return out, false, agentapi.Errorf(agentapi.CodeInternal,
			"Porchlight could not write to its data directory, so nothing was changed. Is the disk full?")
	}
	a.notices = notices
	if former != "" {
		a.formers[name] = store.WithFormer(a.formers[name], former)
	}
	a.remember(name, now, out, e.At)
	if out.App == nil && out.Denial == nil {
		delete(a.rows, name)
	} else {
		a.rows[name] = out.Row
	}
	if out.Gone != "" {
		delete(a.silent, out.Gone)
		delete(a.dead, out.Gone)
	}
	if out.Gone != "" || out.App == nil {
		a.looked.Delete(name)
	}
	a.swap()
	return out, true, nil
}

// formerOf is the id that a name has before a change and not after it, if any.
func formerOf(before, after *store.App) string {
	if before == nil || after != nil && after.ID == before.ID {
		return ""
	}
	return before.ID
}

// askAgainAfter is how long a name that asked aloud and withdrew stays quiet when
// it asks again; a loop of both must not ring.
const askAgainAfter = time.Minute

// remember notes when a name asked aloud. What is older than askAgainAfter has
// no effect and is dropped.
func (a *Apps) remember(name string, now Row, out Outcome, at time.Time) {
	asks := func(app *store.App) bool { return app != nil && app.Status == agentapi.StatusPending }
	if asks(now.App) || !asks(out.App) || out.App.Quiet {
		return
	}
	maps.DeleteFunc(a.asked, func(_ string, then time.Time) bool { return !at.Before(then.Add(askAgainAfter)) })
	a.asked[name] = at
}

// labelTaken says whether another approved app has the label the event needs.
// Requests do not hold their labels: a program could otherwise block any name
// just by asking.
func (a *Apps) labelTaken(name string, now Row, e Event) bool {
	label := e.Label
	switch {
	case e.Kind == Approve && now.App != nil:
		label = now.App.Label
	case e.Kind != Publish:
		return false
	}
	folded := foldLabel(label)
	for _, app := range a.shown.Load().byLabel {
		if app.Name == name || app.ID == "" {
			continue
		}
		if app.folded == folded {
			return true
		}
		// One that asks again under another label still has the first.
		if was := a.rows[app.Name].App.Approved; was != nil && foldLabel(was.Label) == folded {
			return true
		}
	}
	return false
}

// checkRoom bounds how many rows there are, and how many of them wait for other
// users of the computer.
func (a *Apps) checkRoom(now Row, out Outcome, by Caller) error {
	var pending, total, others, theirs int
	for _, row := range a.rows {
		switch {
		case approved(row.App):
			total++
		case row.App != nil:
			pending++
			if row.App.Asker != "" {
				others++
			}
			if row.App.Asker == by.asker() {
				theirs++
			}
		}
	}
	switch {
	case by.Stranger && now.App == nil && out.App != nil && (theirs >= maxPendingOfUser || others >= maxPendingOfOthers):
		return agentapi.Errorf(agentapi.CodeTooMany,
			"Apps of your user wait for the owner of this Porchlight already, as many as may. Ask the owner to decide about them first.")
	case now.App == nil && out.App != nil && pending >= maxPending:
		return agentapi.Errorf(agentapi.CodeTooMany,
			"%d apps are waiting for the owner's decision; no more can ask until some are decided.", maxPending)
	case !approved(now.App) && approved(out.App) && total >= maxApproved:
		return agentapi.Errorf(agentapi.CodeConflict, "%d apps are approved, which is the most. Revoke one first.", maxApproved)
	}
	return nil
}

// Notices returns what the owner should be told, oldest first.
func (a *Apps) Notices() []agentapi.Notice {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.notices)
}

func isLive(app *store.App) bool { return app != nil && app.Status == agentapi.StatusLive }

// approved says whether the owner said yes to an app once and did not take it
// back. One that has changed since may be waiting for another yes.
func approved(app *store.App) bool { return app != nil && app.ID != "" }

// newID is 128 random bits, URL-safe.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

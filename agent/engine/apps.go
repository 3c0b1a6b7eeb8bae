// Package engine keeps the apps that local programs publish: who asked, what the
// owner decided, what is live.
//
// An event (a program's request, an owner's decision) comes in; next says what
// follows; the outcome is stored durably, then the snapshot that the proxy reads
// is swapped, then the connections of an app that is gone are closed, then the
// caller is answered. The package knows nothing of HTTP, and it decides which
// apps there are, never who may open them.
package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/sleep"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
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
	OwnPorts []int
	// AskAgain has an approved app whose port changed wait for the owner again;
	// nil for not.
	AskAgain func() bool
	// Listener says who listens where an app is, which may take a while; last is
	// the process that was seen there before, 0 for none.
	Listener func(target upstream.Target, last int) agentapi.Listener
	// ListenerUser says it quickly, without the program where that is not known
	// already. socket is the number of the socket, another one for every other
	// socket, and 0 where there is none to be had. When nil it is Listener, without
	// numbers.
	ListenerUser func(target upstream.Target) (l agentapi.Listener, socket uint64)
	// Container says which container takes connections where an app is, and calls who listens
	// by it: zero for none, nil where that is not known, and unnamed where it may be one then.
	// fresh has its engine asked anew where it may be another than before. nil: no engine is asked.
	Container func(target upstream.Target, l *agentapi.Listener, fresh bool) (behind *agentapi.Container, unnamed bool)
	// Answers connects, to see whether anybody takes connections; nil for nobody. It
	// is asked of approved apps, where Listener names no user.
	Answers func(target upstream.Target) bool
	// Listens says quickly whether anybody listens; nil for always.
	Listens func(target upstream.Target) bool
	// Network are the ports that other computers can open as they are; nil for none.
	Network func() map[int]bool
	// Own says whether a user, by the system's own id, counts as the one the agent
	// runs as; nil for none. Me is that one.
	Own func(userID string) bool
	Me  store.ListenerUser
	// UserName is what the system calls a user, by its own id; nil for the id.
	UserName func(userID string) string
	// OnGone closes what is open to an app, after its route is gone.
	OnGone func(appID string) agentapi.Closed
	// OnReached is called after an app became one that visitors reach, or one that
	// they reach in another way, by the owner's choice or by itself. OnListening is
	// called with each look at whether anybody listens for an app that is on. nil for
	// not.
	OnReached   func(appID string, byOwner bool)
	OnListening func(app App, listening bool)
	// Happened keeps what changed, for the owner to read; nil for not.
	Happened func(agentapi.Activity)
	// Changes is raised after anything changed; nil when nobody follows it.
	Changes *broadcast.Signal
	Now     func() time.Time // time.Now when nil
	// SinceBoot is how long this computer has run, asleep or awake; as the system says
	// when nil.
	SinceBoot func() time.Duration
	Log       *slog.Logger // discarded when nil
}

// App is a published app or a request for one, as everybody sees it. It is made after each
// change, and never changed.
type App struct {
	ID      string // random, from the first approval on; what access is given to
	Name    string // sub-address
	Label   string // shown name
	Port    int
	Address string // upstream.IPv6, or empty for IPv4: where it listens
	Key     string // the key it showed over HTTPS, of one whose key is pinned
	Status  agentapi.Status
	Live    bool // at its address: one whose port has become ours was approved for another program
	Paused  bool // closed to everybody by the owner, and live all the same
	TCP     bool // reached by programs over TCP, and never by HTTP
	Options agentapi.AppOptions
	Formers []string // ids of the apps that had the name before
	User    string   // whose programs it was approved for, by the system's own id; empty when not known

	folded string     // Label as labels are compared
	order  string     // orderOf it
	looks  [2]string  // looksOf it
	kept   *store.App // what this was made of; never changed
}

// Apps is safe for concurrent use.
type Apps struct {
	cfg   AppsConfig
	shown atomic.Pointer[shown] // replaced while mu is held, never changed

	mu      sync.Mutex
	rows    map[string]stored    // guarded by mu
	formers map[string][]string  // guarded by mu; see App.Formers
	notices []agentapi.Notice    // guarded by mu, oldest first
	seen    uint64               // guarded by mu: id of the newest the owner has seen
	asked   map[string]time.Time // guarded by mu: when a request for the name last rang, see remember

	count store.Count      // guarded by mu: see passed
	ends  broadcast.Signal // an approval may end at another time than before

	lookFor time.Duration // how long approving looks: the constant, and another in tests

	looking   sync.Mutex // one look at all ports at a time
	lookedAt  time.Time  // guarded by looking: when it ended
	lookedAll *shown     // guarded by looking: the apps it was for
	network   network    // guarded by looking

	looked sync.Map  // name → uint64: the socket last given to Run to look at
	looks  chan look // for Run
}

// NewApps reads the stored apps. It starts nothing.
func NewApps(cfg AppsConfig) (*Apps, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.SinceBoot == nil {
		cfg.SinceBoot = sleep.SinceBoot
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.ListenerUser == nil {
		cfg.ListenerUser = func(target upstream.Target) (agentapi.Listener, uint64) { return cfg.Listener(target, 0), 0 }
	}
	kept, err := cfg.Store.Apps()
	if err != nil {
		return nil, err
	}
	a := &Apps{cfg: cfg, rows: map[string]stored{}, formers: kept.Formers, notices: kept.Notices, asked: map[string]time.Time{},
		lookFor: lookFor, looks: make(chan look, maxLooks)}
	for name, app := range kept.Apps {
		a.rows[name] = stored{App: &app}
	}
	for name, denial := range kept.Denials {
		a.rows[name] = stored{App: a.rows[name].App, Denial: &denial}
	}
	a.swap()
	return a, errors.Join(a.readSeen(), a.readCount())
}

// Publish carries out POST /publish: pending the first time, live at once for a name
// that was approved before.
func (a *Apps) Publish(ctx context.Context, by Caller, req agentapi.PublishRequest) (agentapi.Publication, error) {
	return a.publish(ctx, by, req, false)
}

// PublishTCP is Publish of an app that programs reach over TCP. Only the owner asks for one:
// whoever is let in is to it a program of this computer, without a name.
func (a *Apps) PublishTCP(ctx context.Context, name string, req agentapi.PublishTCP) (agentapi.Publication, error) {
	return a.publish(ctx, Caller{}, agentapi.PublishRequest{Name: name, Label: req.Label, LocalPort: req.LocalPort}, true)
}

func (a *Apps) publish(ctx context.Context, by Caller, req agentapi.PublishRequest, tcp bool) (agentapi.Publication, error) {
	if err := checkName(req.Name, a.cfg.Root()); err != nil {
		return agentapi.Publication{}, err
	}
	label, err := cleanLabel(req.Label)
	if err != nil {
		return agentapi.Publication{}, err
	}
	if err := checkPort(req.LocalPort, a.cfg.OwnPorts); err != nil {
		return agentapi.Publication{}, err
	}
	before, _ := a.Lookup(req.Name)
	e := event{Kind: onPublish, By: by, Label: label, Written: req.Label, Port: req.LocalPort, TCP: tcp, Contained: before.contained()}
	if before.Status != agentapi.StatusLive || before.Port != req.LocalPort { // else nobody is asked, or because of who listens
		e.Asks = by.asks(req)
	}
	socket := a.glance(&e, before.places(req.LocalPort), before.ID != "")
	out, _, err := a.apply(ctx, req.Name, e)
	if err != nil {
		return agentapi.Publication{}, err
	}
	if e.Listener.UserID != "" && e.Listener.Program == "" {
		a.lookLater(look{name: req.Name, port: req.LocalPort, socket: socket})
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

// Unpublish carries out DELETE /publish/:name: the route goes, an approval stays.
func (a *Apps) Unpublish(ctx context.Context, by Caller, name string) (agentapi.Publication, error) {
	if _, _, err := a.apply(ctx, name, event{Kind: onUnpublish, By: by}); err != nil {
		return agentapi.Publication{}, err
	}
	return agentapi.Publication{Status: agentapi.StatusStopped}, nil
}

// Approve gives an app that asked its address. An owner who looked at the request
// approves what they have seen: it is refused with CodeConflict when the request is
// another by now. It may take the app from everybody else who could open it. With an
// end it also changes that of an app that is approved already.
func (a *Apps) Approve(ctx context.Context, name string, how agentapi.Approval) (agentapi.Publication, error) {
	if err := checkName(name, a.cfg.Root()); err != nil {
		// The short name can have become the name of a request made before.
		return agentapi.Publication{}, err
	}
	e := event{Kind: onApprove, NewID: newID(), Seen: how.Seen, Alone: how.Alone, Terminal: how.Terminal, PID: how.PID, Me: a.cfg.Me}
	var err error
	if e.Until, err = a.untilOf(how.Until); err != nil {
		return agentapi.Publication{}, err
	}
	if app, ok := a.Lookup(name); ok && app.Status == agentapi.StatusPending {
		e.Port, e.Contained = app.Port, true
		a.lookSoon(ctx, &e, app, true)
	}
	out, _, err := a.apply(ctx, name, e)
	if err != nil {
		if agentapi.CodeOf(err) == agentapi.CodeConflict {
			a.noteListener(ctx, name, e) // so that looking again shows who listens by now
		}
		return agentapi.Publication{}, err
	}
	return a.publication(out.App), nil
}

// Deny refuses an app that asked. It may ask again: unheard for a while after the
// first time, and until Unmute from the second on.
func (a *Apps) Deny(ctx context.Context, name string) (agentapi.Denied, error) {
	out, _, err := a.apply(ctx, name, event{Kind: onDeny})
	if err != nil {
		return agentapi.Denied{}, err
	}
	return agentapi.Denied{OK: true, Muted: out.Denial.Muted}, nil
}

// Revoke forgets the approval, and answers what it closed.
func (a *Apps) Revoke(ctx context.Context, name string) (agentapi.Closed, error) {
	_, closed, err := a.apply(ctx, name, event{Kind: onRevoke})
	return closed, err
}

// Unmute has the owner hear of the name again.
func (a *Apps) Unmute(ctx context.Context, name string) error {
	_, _, err := a.apply(ctx, name, event{Kind: onUnmute})
	return err
}

// Pause closes an approved app to everybody and keeps its approval, its people
// and its state. It answers what it closed. For the app itself it stays live, and
// neither stopping nor publishing again opens it.
func (a *Apps) Pause(ctx context.Context, name string) (agentapi.Closed, error) {
	_, closed, err := a.apply(ctx, name, event{Kind: onPause})
	return closed, err
}

// Resume takes a Pause back, and puts an app on that took itself off. Resuming what
// is neither is no error.
func (a *Apps) Resume(ctx context.Context, name string) (agentapi.Publication, error) {
	out, _, err := a.apply(ctx, name, event{Kind: onResume})
	if err != nil {
		return agentapi.Publication{}, err
	}
	return a.publication(out.App), nil
}

// ChangeOptions changes the options of an approved app and returns them as kept: of
// two changes at a time none is lost. change may be called more than once.
func (a *Apps) ChangeOptions(ctx context.Context, name string, change func(*agentapi.AppOptions)) (agentapi.AppOptions, error) {
	out, _, err := a.apply(ctx, name, event{Kind: onChoose, Change: change})
	if err != nil {
		return agentapi.AppOptions{}, err
	}
	return out.App.Options, nil
}

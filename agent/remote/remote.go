// Package remote keeps the agent and its control plane in step: it keeps a sync
// waiting, hands every snapshot on, and reports which apps this computer has
// approved. It decides nothing about access.
//
// The sync is asked by the tunnel, on the connection that is there anyway, and over
// HTTPS where none carries it: relays are not known yet, or cannot be reached.
package remote

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control/controlapi"
)

// Control is the control plane as this package needs it; *controlapi.Client is
// one.
type Control interface {
	Sync(ctx context.Context, version string) (controlapi.Snapshot, error)
	PutApps(ctx context.Context, apps controlapi.Apps) error
}

// Tunnel is the other way to ask; *tunnel.Tunnel is one, and says what the methods do.
type Tunnel interface {
	SyncedBy() (now, soon bool, changed <-chan struct{})
	Sync(ctx context.Context, version string, take func(controlapi.Snapshot) error) error
}

// How long the tunnel is waited for before HTTPS is asked: at the start, and from when it
// has ceased to carry the sync, when all agents of a node come back at once.
const (
	tunnelAtFirst = 2 * time.Second
	tunnelAgain   = 10 * time.Second
	// besideTunnel is how long, at least, and at most twice that, HTTPS is asked where it
	// answers and the relays that are connected refuse.
	besideTunnel = time.Minute
)

// errMoved ends a sync over HTTPS because the tunnel carries it now.
var errMoved = errors.New("the tunnel carries the sync now")

// Config of a Remote. Without a Tunnel HTTPS is asked; ComputerID and Last may be empty.
// Every other field is required.
type Config struct {
	Control Control
	Tunnel  Tunnel
	// ComputerID is this computer's; a snapshot of another one is refused. Empty where
	// that is not known.
	ComputerID string
	// Last is the snapshot that was kept; an older one is refused.
	Last controlapi.Snapshot
	// Apps lists what this computer has approved; AppsChanged is readable
	// whenever that may have changed.
	Apps        func() []controlapi.App
	AppsChanged <-chan struct{}
	// Knocks says from whom knocks are taken, which is told with the apps; AppsChanged
	// tells of it, too.
	Knocks func() controlapi.KnocksFrom
	// OnSnapshot takes each new snapshot; OnContact is called when the control
	// plane answered that nothing changed; OnChange when State changed.
	OnSnapshot func(controlapi.Snapshot)
	OnContact  func()
	OnChange   func()
	Log        *slog.Logger
}

// State of the connection.
type State struct {
	// Connected is true while the last exchange with the control plane worked.
	Connected bool
	// Refused is true when the control plane no longer knows this computer's
	// credential; trying again will not help.
	Refused bool
	// Older is true when what it tells is older than the last, and so not believed.
	Older bool
	// OfBefore is true when it is of before version 0.1.0, and so not worked with.
	OfBefore bool
	// Since is when Connected last changed.
	Since time.Time
}

// Remote is made by New and does nothing before Run.
type Remote struct {
	cfg   Config
	state atomic.Pointer[State]

	// The sync's goroutine owns these.
	version    string // of the last snapshot taken, "" for none
	line       string // its line and change; see Snapshot.Change
	change     int64
	left       []string  // lines before that one; see Snapshot.Left
	waitTunnel time.Time // until when the tunnel is waited for
	carried    bool      // the tunnel carried the sync when it was last asked
	beside     time.Time // until when HTTPS is asked though the tunnel stands; zero where it failed

	answered chan struct{}          // holds one token after a snapshot came
	said     atomic.Pointer[string] // what the last one says was reported, until that is looked at
	report   chan struct{}          // holds one token while the apps are being reported
	// Of who holds report.
	has   string // the digest of what was put last or is there at the start, "" where that is not known
	put   bool   // something was put since the start
	again again

	doubted atomic.Bool // HTTPS is to be asked; see Doubt

	mu    sync.Mutex
	woken chan struct{} // guarded by mu; closed and replaced by Wake
}

// New checks nothing and starts nothing.
func New(cfg Config) *Remote {
	r := &Remote{cfg: cfg, answered: make(chan struct{}, 1), report: make(chan struct{}, 1), woken: make(chan struct{})}
	r.line, r.change, r.left = cfg.Last.Line, cfg.Last.Change, cfg.Last.Left
	r.state.Store(&State{Since: time.Now()})
	return r
}

// State is safe to call at any time.
func (r *Remote) State() State { return *r.state.Load() }

// Run keeps the sync and the report of apps up until ctx ends, and returns
// ctx's error then.
func (r *Remote) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.syncForever(ctx) })
	g.Go(func() error { return r.reportForever(ctx) })
	return g.Wait()
}

// Wake ends the waiting between attempts: there is a sign that the control plane
// can be reached again. What is under way is left alone.
func (r *Remote) Wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.woken)
	r.woken = make(chan struct{})
}

// Doubt has HTTPS asked at once whether this computer is still known: a relay says that
// its credential is not valid.
func (r *Remote) Doubt() {
	r.doubted.Store(true)
	r.Wake()
}

// wakeups is closed by the next Wake.
func (r *Remote) wakeups() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.woken
}

func (r *Remote) syncForever(ctx context.Context) error {
	failures := 0
	r.waitTunnel = time.Now().Add(tunnelAtFirst)
	for ctx.Err() == nil {
		woken := r.wakeups()
		err := r.syncOnce(ctx)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errMoved) {
			continue
		}
		r.note(err)
		if err == nil {
			failures = 0
			continue
		}
		failures++
		wait, woken := pause(woken, err, failures)
		what := "control plane does not answer"
		if isRefusal(err) {
			what = "control plane does not know this computer any more"
		}
		r.cfg.Log.Warn(what, "err", err, "retry_in", wait.Round(time.Millisecond))
		sleep(ctx, woken, wait)
	}
	return ctx.Err()
}

// syncOnce is one sync, by the tunnel where that carries it.
func (r *Remote) syncOnce(ctx context.Context) error {
	if r.cfg.Tunnel == nil {
		return r.ask(ctx)
	}
	if time.Now().Before(r.beside) {
		return r.askBeside(ctx)
	}
	if !r.awaitTunnel(ctx) {
		return r.askUntilTunnel(ctx)
	}
	err := r.cfg.Tunnel.Sync(ctx, r.version, r.take)
	if err == nil {
		r.carried, r.beside = true, time.Time{}
		return nil
	}
	if r.carried { // until this moment
		r.carried, r.waitTunnel = false, time.Now().Add(tunnelAgain)
	}
	if stands, _, _ := r.cfg.Tunnel.SyncedBy(); !stands || time.Now().Before(r.waitTunnel) {
		return err
	}
	answered := !r.beside.IsZero()
	r.beside = time.Now().Add(besideTunnel + rand.N(besideTunnel))
	if answered {
		return r.askBeside(ctx)
	}
	return err // which says how long to wait before HTTPS is asked
}

// askBeside asks over HTTPS because the relays that are connected carry no sync, though
// they serve: another node may answer. A failure has the tunnel asked next.
func (r *Remote) askBeside(ctx context.Context) error {
	err := r.ask(ctx)
	if err != nil {
		r.beside = time.Time{}
	}
	return err
}

// awaitTunnel reports whether the tunnel carries the sync, now or soon.
func (r *Remote) awaitTunnel(ctx context.Context) bool {
	timer := time.NewTimer(time.Until(r.waitTunnel))
	defer timer.Stop()
	for {
		woken := r.wakeups()
		now, soon, changed := r.cfg.Tunnel.SyncedBy()
		if now || !soon || r.doubted.Swap(false) {
			return now
		}
		select {
		case <-changed:
		case <-woken:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// askUntilTunnel asks over HTTPS and ends that with errMoved once the tunnel carries
// the sync.
func (r *Remote) askUntilTunnel(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		for ctx.Err() == nil {
			now, _, changed := r.cfg.Tunnel.SyncedBy()
			if now {
				cancel(errMoved)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
	err := r.ask(ctx)
	if err != nil && context.Cause(ctx) == errMoved {
		return errMoved
	}
	return err
}

// ask is one sync over HTTPS. After a failure it asks without a version, which is answered
// at once: a sync that waits says only after SyncWait that the control plane is back,
// and meanwhile the owner would read that it is away.
func (r *Remote) ask(ctx context.Context) error {
	version := r.version
	if !r.State().Connected {
		version = ""
	}
	snapshot, err := r.cfg.Control.Sync(ctx, version)
	if err != nil {
		return err
	}
	return r.take(snapshot)
}

// maxLeft bounds how many lines are remembered that the control plane left.
const maxLeft = 32

// take hands a snapshot on unless it is another computer's, or older than the last: a
// node that does not know what the others do tells what was withdrawn since. Older is also
// what is of a line that was left for another one.
func (r *Remote) take(snapshot controlapi.Snapshot) error {
	if snapshot.Unchanged {
		r.cfg.OnContact()
		return nil
	}
	defer signal(r.answered)
	if own := r.cfg.ComputerID; own != "" && snapshot.Computer.ID != own {
		return errForeign
	}
	if snapshot.Line == r.line && snapshot.Change < r.change || snapshot.Line == "" && r.line != "" || slices.Contains(r.left, snapshot.Line) {
		return errOlder
	}
	if r.line != "" && snapshot.Line != r.line {
		r.left = slices.Insert(slices.Clone(r.left[:min(len(r.left), maxLeft-1)]), 0, r.line)
	}
	snapshot.Left = r.left
	r.cfg.OnSnapshot(snapshot)
	r.version, r.line, r.change = snapshot.Version, snapshot.Line, snapshot.Change
	if snapshot.Reported != "" {
		r.said.Store(&snapshot.Reported)
	}
	return nil
}

var (
	errForeign = errors.New("the server told what is another computer's, which is not believed")
	errOlder   = errors.New("the server told an older state than before, which is not believed")
)

// note keeps the state and tells about a change of it.
func (r *Remote) note(err error) {
	old := r.state.Load()
	next := State{Connected: err == nil, Refused: isRefusal(err), Older: errors.Is(err, errOlder),
		OfBefore: errors.Is(err, controlapi.ErrOfBefore), Since: old.Since}
	if next == *old {
		return
	}
	next.Since = time.Now()
	r.state.Store(&next)
	r.cfg.OnChange()
}

func isRefusal(err error) bool {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	return ok && refusal.Code == controlapi.CodeUnauthorized
}

// pause is how long to wait after so many failures, the last of which was err, and what
// ends the waiting: as long as the control plane asked for, whatever wakes this
// computer, or else as Backoff says.
func pause(woken <-chan struct{}, err error, failures int) (time.Duration, <-chan struct{}) {
	wait, told := controlapi.Obey(err, controlapi.Backoff(failures))
	if told {
		return wait, nil
	}
	return wait, woken
}

// sleep ends early when woken is closed; nil for what nothing wakes.
func sleep(ctx context.Context, woken <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-timer.C:
	}
}

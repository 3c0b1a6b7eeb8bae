// Package remote keeps the agent and its control plane in step: it keeps a sync
// waiting, hands every snapshot on, and reports which apps this computer has
// approved. It decides nothing about access.
//
// The sync goes by the tunnel, on the connection that is there anyway. Where no tunnel gets
// through HTTPS is asked what is there, so that the owner is told.
package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
)

// Control is the control plane as this package needs it; *controlapi.Client is
// one.
type Control interface {
	Answers(ctx context.Context) error
	PutApps(ctx context.Context, apps controlapi.Apps) error
}

// Tunnel carries the sync; *tunnel.Tunnel is one, and says what Sync does.
type Tunnel interface {
	Sync(ctx context.Context, version string, receive func(controlapi.Snapshot) error) error
}

// After lookAfter failures in a row each one has HTTPS asked, for lookFor at most: the tunnel
// takes longer and longer to try again.
const (
	lookAfter = 3
	lookFor   = 10 * time.Second
)

// Config of a Remote. ComputerID and Last may be empty; every other field is required.
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
	// TellOff says whether people with an app here may know since when this computer is off;
	// it is told like Knocks. nil: they may not.
	TellOff func() bool
	// Groups is what the owner's groups open; nil for nothing. See controlapi.Apps.
	Groups func() map[string]map[string]time.Time
	// Fills are the groups of providers that fill some of those; nil for none.
	Fills func() []string
	// Ends is when the first certificate ends that cannot be renewed, zero for none; nil where
	// there are none of an authority.
	Ends func() time.Time
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
	// Blocked is true when it answers over HTTPS, and no tunnel gets through.
	Blocked bool
	// OfBefore is true when it is of before version 0.1.0, and so not worked with.
	OfBefore bool
	// Since is when Connected last changed.
	Since time.Time
	// Why is what the last exchange failed with; nil while Connected.
	Why error
}

// same says whether nothing changed but why.
func (s State) same(other State) bool {
	s.Why, other.Why = nil, nil
	return s == other
}

// Remote is made by New and does nothing before Run.
type Remote struct {
	cfg   Config
	state atomic.Pointer[State]

	// The sync's goroutine owns these.
	version string // of the last snapshot taken, "" for none
	line    string // its line and change; see Snapshot.Change
	change  int64
	left    []string // lines before that one; see Snapshot.Left
	blocked bool     // see State, as does before
	before  bool

	answered chan struct{}          // holds one token after a snapshot came
	said     atomic.Pointer[string] // what the last one says was reported, until that is looked at
	report   chan struct{}          // holds one token while the apps are being reported
	// Of who holds report.
	has   string // the digest of what was put last or is there at the start, "" where that is not known
	put   bool   // something was put since the start
	again again

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

// wakeups is closed by the next Wake.
func (r *Remote) wakeups() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.woken
}

func (r *Remote) syncForever(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		woken := r.wakeups()
		err := r.cfg.Tunnel.Sync(ctx, r.version, r.apply)
		if ctx.Err() != nil {
			break
		}
		if err == nil || gotThrough(err) {
			r.blocked, r.before = false, false
		}
		if err == nil {
			failures = 0
			r.note(nil)
			continue
		}
		failures++
		if failures >= lookAfter && !gotThrough(err) {
			r.look(ctx, woken)
		}
		r.note(err)
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

// gotThrough says of a failure that there was an answer by the tunnel: what was refused, or
// not believed, or that a relay takes nobody in at the moment.
func gotThrough(err error) bool {
	if _, refused := errors.AsType[*controlapi.Error](err); refused {
		return true
	}
	return errors.Is(err, errOlder) || errors.Is(err, errForeign) || controlapi.Deferred(err)
}

// look asks over HTTPS what is there, unless it is woken before.
func (r *Remote) look(ctx context.Context, woken <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	go func() {
		select {
		case <-woken:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := r.cfg.Control.Answers(ctx)
	r.blocked, r.before = err == nil, errors.Is(err, controlapi.ErrOfBefore)
}

// maxLeft bounds how many lines are remembered that the control plane left.
const maxLeft = 32

// apply hands a snapshot on unless it is another computer's, or older than the last: a
// node that does not know what the others do tells what was withdrawn since. Older is also
// what is of a line that was left for another one.
func (r *Remote) apply(snapshot controlapi.Snapshot) error {
	if snapshot.Unchanged {
		r.cfg.OnContact()
		return nil
	}
	defer broadcast.Raise(r.answered)
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

// note keeps the state and tells about a change of it. Who was refused is until it is let
// in: what else fails then says nothing of that.
func (r *Remote) note(err error) {
	old := r.state.Load()
	next := State{Connected: err == nil, Refused: isRefusal(err) || err != nil && old.Refused, Older: errors.Is(err, errOlder),
		Blocked: r.blocked, OfBefore: r.before, Since: old.Since, Why: err}
	same := next.same(*old)
	if !same {
		next.Since = time.Now()
	}
	r.state.Store(&next)
	if !same || fmt.Sprint(next.Why) != fmt.Sprint(old.Why) {
		r.cfg.OnChange()
	}
}

func isRefusal(err error) bool {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	return ok && refusal.Code == controlapi.CodeUnauthorized
}

// pause is how long to wait after so many failures, the last of which was err, and what
// ends the waiting: as long as the control plane asked for, whatever wakes this
// computer, or else as Backoff says.
func pause(woken <-chan struct{}, err error, failures int) (time.Duration, <-chan struct{}) {
	wait, asked := controlapi.Obey(err, controlapi.Backoff(failures))
	if asked {
		return wait, nil
	}
	return wait, woken
}

// sleep ends early when woken is closed; nil for what nothing wakes.
func sleep(ctx context.Context, woken <-chan struct{}, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-woken:
	case <-time.After(d):
	}
}

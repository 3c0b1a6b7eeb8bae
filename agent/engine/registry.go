package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/agent/agentapi"
	"porchlight/agent/broadcast"
	"porchlight/agent/procinfo"
)

const (
	// maxRegistrants is how many registrations there may be at a time.
	maxRegistrants = 1000

	// maxAppID is the longest appId, in characters.
	maxAppID = 200
)

// RegistryConfig of NewRegistry. No field is required.
type RegistryConfig struct {
	// Grace is how long after its last registrant left the engine is Idle; zero
	// for an engine that something else holds open, which never is.
	Grace time.Duration
	// FirstWithin is how long an engine with a Grace waits for its first
	// registrant; zero for ever.
	FirstWithin time.Duration
	// Open takes hold of a process; procinfo.Open when nil. It fails with
	// procinfo.ErrGone for an id that no process has.
	Open func(pid int) (Process, error)
	Now  func() time.Time // time.Now when nil
	Log  *slog.Logger     // discarded when nil
}

// Process is one process that is watched, and never another one with its id;
// see procinfo.Handle.
type Process interface {
	Ended() bool
	Wait(ctx context.Context) error
	Close()
}

// Registry keeps which apps are attached to this engine (the interface, States:
// Engine registration) and the capability they get. Nothing of it is stored: it
// lasts as long as the engine's run.
//
// A registration is one appId with one pid. It ends by deregistering, when that
// process dies, or agentapi.ReapAfter after it was last heard of. It is safe for
// concurrent use; registrations end by themselves only while Run is running.
type Registry struct {
	cfg        RegistryConfig
	capability string
	hash       [sha256.Size]byte // of capability

	mu         sync.Mutex
	rows       map[registrantKey]*registrant // guarded by mu
	aloneSince time.Time                     // guarded by mu: since when rows is empty; zero for never filled and no FirstWithin
	stopped    bool                          // guarded by mu: idle is closed
	run        context.Context               // guarded by mu: Run's; nil before it
	watchers   sync.WaitGroup

	wake    chan struct{} // capacity 1: the next deadline may be another
	idle    chan struct{}
	changes broadcast.Signal
}

type registrantKey struct {
	appID string
	pid   int // as claimed
}

type registrant struct {
	agentapi.Registrant
	process Process // nil where the system offers none: heartbeats alone count
	stop    func()  // ends the watch of process and lets go of it; guarded by Registry.mu
}

// NewRegistry makes the capability of this run and starts nothing.
func NewRegistry(cfg RegistryConfig) *Registry {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Open == nil {
		cfg.Open = func(pid int) (Process, error) { return procinfo.Open(pid) }
	}
	var secret [32]byte
	rand.Read(secret[:])
	r := &Registry{
		cfg:        cfg,
		capability: base64.RawURLEncoding.EncodeToString(secret[:]),
		rows:       map[registrantKey]*registrant{},
		wake:       make(chan struct{}, 1),
		idle:       make(chan struct{}),
	}
	r.hash = sha256.Sum256([]byte(r.capability))
	return r
}

// Admits says whether given is the capability of this run. It takes the same
// time for every other text of its length.
func (r *Registry) Admits(given string) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], r.hash[:]) == 1
}

// Register carries out POST /engine/register. Registering again changes nothing
// but LastSeenAt. caller tells which process asks, as far as the system does; it
// is called for new registrations only, because it is not cheap.
//
// What is watched is the process with the claimed pid. A sandboxed app knows its
// own pid inside the sandbox only: where that is what the caller calls itself,
// the caller is watched.
func (r *Registry) Register(req agentapi.RegisterRequest, caller func() procinfo.Process) (agentapi.Registration, error) {
	if err := checkRegistrant(req); err != nil {
		return agentapi.Registration{}, err
	}
	count, known, err := r.refresh(req)
	if err != nil {
		return agentapi.Registration{}, err
	}
	if !known {
		if count, err = r.add(req, caller()); err != nil {
			return agentapi.Registration{}, err
		}
	}
	return agentapi.Registration{
		OK:               true,
		AppID:            req.AppID,
		Protocol:         agentapi.Protocol,
		Registrants:      count,
		Capability:       r.capability,
		HeartbeatSeconds: int(agentapi.HeartbeatEvery / time.Second),
	}, nil
}

// Heartbeat carries out POST /engine/heartbeat.
func (r *Registry) Heartbeat(req agentapi.RegisterRequest) (agentapi.HeartbeatAnswer, error) {
	if err := checkRegistrant(req); err != nil {
		return agentapi.HeartbeatAnswer{}, err
	}
	count, known, err := r.refresh(req)
	if err != nil {
		return agentapi.HeartbeatAnswer{}, err
	}
	if !known {
		return agentapi.HeartbeatAnswer{}, agentapi.Errorf(agentapi.CodeNotFound,
			"This app is not registered with this engine, or not any more. Register it with POST /engine/register.")
	}
	return agentapi.HeartbeatAnswer{
		OK: true, Registrants: count, HeartbeatSeconds: int(agentapi.HeartbeatEvery / time.Second),
	}, nil
}

// Deregister carries out POST /engine/deregister: of several registrations under
// one appId it ends those of the calling process, and all of them when none is
// that process's. caller is called only where that matters.
func (r *Registry) Deregister(appID string, caller func() procinfo.Process) (agentapi.Deregistered, error) {
	if err := checkAppID(appID); err != nil {
		return agentapi.Deregistered{}, err
	}
	r.mu.Lock()
	ofApp := r.ofApp(appID)
	r.mu.Unlock()
	if len(ofApp) > 1 {
		by := caller().PID
		own := slices.DeleteFunc(slices.Clone(ofApp), func(row *registrant) bool {
			return by == 0 || row.CallerPID != by && !procinfo.Calls(by, row.PID)
		})
		if len(own) > 0 {
			ofApp = own
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range ofApp {
		r.remove(row, "deregistered")
	}
	return agentapi.Deregistered{OK: true, Registrants: len(r.rows)}, nil
}

// Count is how many registrations there are.
func (r *Registry) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.rows)
}

// Registrants lists them, the oldest first. LastSeenAt is to the minute, so that
// the owner's state does not change with every heartbeat.
func (r *Registry) Registrants() []agentapi.Registrant {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]agentapi.Registrant, 0, len(r.rows))
	for _, row := range r.rows {
		shown := row.Registrant
		shown.LastSeenAt = shown.LastSeenAt.Truncate(time.Minute)
		all = append(all, shown)
	}
	slices.SortFunc(all, func(a, b agentapi.Registrant) int {
		return cmp.Or(a.RegisteredAt.Compare(b.RegisteredAt), cmp.Compare(a.AppID, b.AppID), cmp.Compare(a.PID, b.PID))
	})
	return all
}

// AppOf is the appId a process has registered, or empty.
func (r *Registry) AppOf(pid int) string {
	if pid < 1 {
		return ""
	}
	var appID string
	for _, row := range r.Registrants() {
		if row.PID == pid || row.CallerPID == pid {
			appID = row.AppID // the newest counts
		}
	}
	return appID
}

// Subscribe returns a channel that is readable after registrations came or went,
// until cancel is called.
func (r *Registry) Subscribe() (changed <-chan struct{}, cancel func()) { return r.changes.Subscribe() }

// Idle is closed when the engine has had no registrant for its Grace. It is
// final: from then on registering is refused, so that no app attaches to an
// engine on its way out.
func (r *Registry) Idle() <-chan struct{} { return r.idle }

// refresh notes that a registration was heard of. A process that has ended
// cannot be: the same pid is another process's by now, or about to be.
func (r *Registry) refresh(req agentapi.RegisterRequest) (count int, known bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return 0, false, stopping()
	}
	row := r.rows[registrantKey{req.AppID, req.PID}]
	if row == nil {
		return len(r.rows), false, nil
	}
	if row.process != nil && row.process.Ended() {
		r.remove(row, "its process has ended")
		return len(r.rows), false, nil
	}
	row.LastSeenAt = r.cfg.Now()
	return len(r.rows), true, nil
}

// add takes a registration that refresh did not know.
func (r *Registry) add(req agentapi.RegisterRequest, by procinfo.Process) (count int, err error) {
	now := r.cfg.Now()
	row := &registrant{Registrant: agentapi.Registrant{
		AppID: req.AppID, PID: req.PID, CallerPID: by.PID, Program: by.Program, User: by.User, RegisteredAt: now, LastSeenAt: now,
	}}
	watched := req.PID
	if procinfo.Calls(by.PID, req.PID) {
		watched = by.PID
	}
	row.process, err = r.cfg.Open(watched)
	if err != nil {
		row.process = nil
	}
	dead := errors.Is(err, procinfo.ErrGone)

	r.mu.Lock()
	defer r.mu.Unlock()
	key := registrantKey{req.AppID, req.PID}
	refused := func(err error) (int, error) {
		if row.process != nil {
			row.process.Close()
		}
		return 0, err
	}
	switch twin := r.rows[key]; {
	case r.stopped:
		return refused(stopping())
	case twin != nil: // registered twice at once
		_, _ = refused(nil)
		twin.LastSeenAt = now
		return len(r.rows), nil
	case len(r.rows) >= maxRegistrants:
		return refused(&agentapi.Error{
			Code:       agentapi.CodeTooMany,
			Message:    "Too many apps are attached to this engine. Deregister one of them, or end it.",
			RetryAfter: agentapi.HeartbeatEvery,
		})
	}
	if dead {
		row.process = goneProcess{}
	}
	r.rows[key] = row
	r.aloneSince = time.Time{}
	r.watch(row)
	r.notify()
	r.cfg.Log.Info("an app is attached", "app", req.AppID, "pid", req.PID, "program", by.Program, "registrants", len(r.rows))
	return len(r.rows), nil
}

// watch begins to wait for a row's process, when Run is running. mu is held.
func (r *Registry) watch(row *registrant) {
	switch {
	case row.process == nil:
		row.stop = func() {}
	case r.run == nil:
		row.stop = row.process.Close
	default:
		ctx, cancel := context.WithCancel(r.run)
		row.stop = cancel
		r.watchers.Go(func() {
			defer cancel()
			if row.process.Wait(ctx) == nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.remove(row, "its process has ended")
			}
		})
	}
}

// remove ends a registration, unless it has ended. mu is held.
func (r *Registry) remove(row *registrant, why string) {
	key := registrantKey{row.AppID, row.PID}
	if r.rows[key] != row {
		return
	}
	delete(r.rows, key)
	row.stop()
	if len(r.rows) == 0 {
		r.aloneSince = r.cfg.Now()
	}
	r.notify()
	r.cfg.Log.Info("an app is detached", "app", row.AppID, "pid", row.PID, "why", why, "registrants", len(r.rows))
}

// notify tells Run and the owner's side. mu is held.
func (r *Registry) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
	r.changes.Raise()
}

func (r *Registry) ofApp(appID string) []*registrant {
	var rows []*registrant
	for key, row := range r.rows {
		if key.appID == appID {
			rows = append(rows, row)
		}
	}
	return rows
}

// Run ends registrations whose time has come, until ctx ends; then it lets go of
// every process. It returns nil.
func (r *Registry) Run(ctx context.Context) error {
	r.mu.Lock()
	r.run = ctx
	if r.cfg.FirstWithin > 0 && len(r.rows) == 0 && r.aloneSince.IsZero() {
		r.aloneSince = r.cfg.Now().Add(r.cfg.FirstWithin - r.cfg.Grace)
	}
	for _, row := range r.rows {
		r.watch(row)
	}
	r.mu.Unlock()
	defer r.letGo()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
		if next := r.sweep(); next > 0 {
			timer.Reset(next)
		}
	}
}

// sweep ends what is over and says how long nothing else can be; 0 for ever.
// A heartbeat moves a deadline later, so the timer can be early and never late.
func (r *Registry) sweep() (next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Now()
	sooner := func(left time.Duration) {
		if next == 0 || left < next {
			next = left
		}
	}
	for _, row := range r.rows {
		if left := agentapi.ReapAfter - now.Sub(row.LastSeenAt); left > 0 {
			sooner(left)
		} else {
			r.remove(row, "no heartbeat")
		}
	}
	if r.cfg.Grace > 0 && len(r.rows) == 0 && !r.aloneSince.IsZero() && !r.stopped {
		if left := r.cfg.Grace - now.Sub(r.aloneSince); left > 0 {
			sooner(left)
		} else {
			r.stopped = true
			close(r.idle)
		}
	}
	return next
}

func (r *Registry) letGo() {
	r.mu.Lock()
	for _, row := range r.rows {
		row.stop()
	}
	r.stopped = true
	r.mu.Unlock()
	r.watchers.Wait()
}

// goneProcess stands for a pid that no process had: it is counted, and reaped
// like one that died a moment later.
type goneProcess struct{}

func (goneProcess) Ended() bool                { return true }
func (goneProcess) Wait(context.Context) error { return nil }
func (goneProcess) Close()                     {}

func checkRegistrant(req agentapi.RegisterRequest) error {
	if err := checkAppID(req.AppID); err != nil {
		return err
	}
	if req.PID < 1 {
		return agentapi.Errorf(agentapi.CodeInvalid, "The pid must be the process id of the app, a whole number above 0.")
	}
	return nil
}

func checkAppID(appID string) error {
	n := utf8.RuneCountInString(appID)
	if n < 1 || n > maxAppID {
		return agentapi.Errorf(agentapi.CodeInvalid,
			"The appId must have 1 to %d characters, for example \"com.example.notes\".", maxAppID)
	}
	for _, c := range appID {
		if !unicode.IsPrint(c) || c == utf8.RuneError || unicode.Is(unicode.Cf, c) {
			return agentapi.Errorf(agentapi.CodeInvalid, "The appId contains characters that cannot be shown. Leave them out.")
		}
	}
	return nil
}

func stopping() error {
	return &agentapi.Error{
		Code:       agentapi.CodeUnavailable,
		Message:    "This engine is stopping, because nothing was attached to it any more. Start it again.",
		RetryAfter: time.Second,
	}
}

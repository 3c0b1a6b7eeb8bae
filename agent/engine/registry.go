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
	"strconv"
	"strings"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/internal/broadcast"
)

const (
	// maxRegistrants is how many registrations there may be at a time.
	maxRegistrants = 1000

	// maxAppID is the longest appId, in bytes.
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
	Open func(pid int) (procinfo.Handle, error)
	// Changes is raised after registrations came or went; nil when nobody follows it.
	Changes *broadcast.Signal
	Now     func() time.Time // time.Now when nil
	Log     *slog.Logger     // discarded when nil
}

// Registry keeps which apps are attached to this engine (docs/interface.md,
// Registrations) and the capability they get. Nothing of it is stored:
// it lasts as long as the engine's run.
//
// A registration is one appId with one pid, of one user: the same two registered by
// another user's program are another registration. It ends by deregistering, when
// that process dies, or agentapi.ReapAfter after it was last heard of. Registry is
// safe for concurrent use; registrations end by themselves only while Run is running.
type Registry struct {
	cfg        RegistryConfig
	capability string
	hash       [sha256.Size]byte // of capability

	mu         sync.Mutex
	rows       map[registrantKey]*registrant // guarded by mu
	aloneSince time.Time                     // guarded by mu: since when rows is empty; zero for never filled and no FirstWithin
	stopped    bool                          // guarded by mu: nobody can attach any more, because Idle is closed or Run has ended
	run        context.Context               // guarded by mu: Run's; nil before it
	watchers   sync.WaitGroup

	wake broadcast.Signal // the next deadline may be another
	idle chan struct{}
}

type registrantKey struct {
	appID string
	pid   int    // as claimed
	asker string // see Caller.registers
}

type registrant struct {
	agentapi.Registrant
	asker   string          // see Caller.registers
	process procinfo.Handle // nil where the system offers none: heartbeats alone count
	stop    func()          // ends the watch of process and lets go of it; guarded by Registry.mu
}

// NewRegistry makes the capability of this run and starts nothing.
func NewRegistry(cfg RegistryConfig) *Registry {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Open == nil {
		cfg.Open = procinfo.Open
	}
	var secret [32]byte
	rand.Read(secret[:])
	r := &Registry{
		cfg:        cfg,
		capability: base64.RawURLEncoding.EncodeToString(secret[:]),
		rows:       map[registrantKey]*registrant{},
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
// but LastSeenAt. caller tells which process asks, as far as the system does at
// once; it is called for new registrations only. See Identify for the rest.
//
// What is watched is the process with the claimed pid, even when another process
// calls: a script may register by way of curl. An app in a sandbox knows only its pid
// inside the sandbox; where that is the pid the calling process has there, the calling
// process is watched. A pid that no process has is accepted, and the registration ends
// like that of a process that died at once.
func (r *Registry) Register(by Caller, req agentapi.RegisterRequest, caller func() procinfo.Process) (agentapi.Registration, error) {
	if err := checkRegistrant(req); err != nil {
		return agentapi.Registration{}, err
	}
	count, known, err := r.refresh(by, req)
	if err != nil {
		return agentapi.Registration{}, err
	}
	if !known {
		if err := r.checkRoom(by); err != nil {
			return agentapi.Registration{}, err // before looking who calls, which is what a flood would cost
		}
		if count, err = r.add(by, req, caller()); err != nil {
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
func (r *Registry) Heartbeat(by Caller, req agentapi.RegisterRequest) (agentapi.HeartbeatAnswer, error) {
	if err := checkRegistrant(req); err != nil {
		return agentapi.HeartbeatAnswer{}, err
	}
	count, known, err := r.refresh(by, req)
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

// Deregister carries out POST /engine/deregister. Of several registrations under one
// appId it ends that of the calling process; where it has none, those it made for
// others; where it made none, all of them. A Stranger never ends what another user's
// program registered. caller is called only where that matters.
func (r *Registry) Deregister(by Caller, appID string, caller func() procinfo.Process) (agentapi.Deregistered, error) {
	if err := checkAppID(appID); err != nil {
		return agentapi.Deregistered{}, err
	}
	r.mu.Lock()
	ofApp := r.ofApp(by, appID)
	r.mu.Unlock()
	if len(ofApp) > 1 {
		ofApp = nearest(ofApp, caller().PID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range ofApp {
		r.remove(row, "deregistered")
	}
	return agentapi.Deregistered{OK: true, Registrants: len(r.rows)}, nil
}

// nearest are the registrations that a process means when it leaves.
func nearest(rows []*registrant, pid int) []*registrant {
	if pid == 0 {
		return rows
	}
	for _, means := range []func(*registrant) bool{
		func(row *registrant) bool { return procinfo.Calls(pid, row.PID) },
		func(row *registrant) bool { return row.CallerPID == pid },
	} {
		var out []*registrant
		for _, row := range rows {
			if means(row) {
				out = append(out, row)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return rows
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

// Idle is closed when the engine has had no registrant for its Grace. It is
// final: from then on registering is refused, so that no app attaches to an
// engine on its way out.
func (r *Registry) Idle() <-chan struct{} { return r.idle }

// refresh notes that a registration was heard of. A registration whose process has
// ended is removed instead: its pid is another process's by now, or soon will be.
func (r *Registry) refresh(by Caller, req agentapi.RegisterRequest) (count int, known bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return 0, false, stopping()
	}
	row := r.rows[registrantKey{req.AppID, req.PID, by.registers()}]
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
func (r *Registry) add(by Caller, req agentapi.RegisterRequest, calls procinfo.Process) (count int, err error) {
	now := r.cfg.Now()
	row := &registrant{asker: by.registers(), Registrant: agentapi.Registrant{
		AppID: req.AppID, PID: req.PID, CallerPID: calls.PID, Program: calls.Program, User: calls.User, RegisteredAt: now, LastSeenAt: now,
	}}
	row.process = r.hold(watched(calls, req))
	// A calling process that the system does not show, or not yet, may be in a sandbox
	// and have claimed a pid that means nothing out here. Then only heartbeats count.
	if hidden := calls.PID == 0 && calls.User != ""; hidden && row.process == (goneProcess{}) {
		row.process = nil
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	key := registrantKey{req.AppID, req.PID, row.asker}
	refused := func(err error) (int, error) {
		if row.process != nil {
			row.process.Close()
		}
		return 0, err
	}
	room := r.checkFull(by)
	switch twin := r.rows[key]; {
	case r.stopped:
		return refused(stopping())
	case twin != nil: // registered twice at once
		_, _ = refused(nil)
		twin.LastSeenAt = now
		return len(r.rows), nil
	case room != nil:
		return refused(room)
	}
	r.rows[key] = row
	r.aloneSince = time.Time{}
	r.watch(row)
	r.notify()
	r.cfg.Log.Info("an app is attached", "app", req.AppID, "pid", req.PID, "program", calls.Program, "registrants", len(r.rows))
	return len(r.rows), nil
}

// Identify completes a registration with the process that made it, where that was
// found only after Register had answered.
func (r *Registry) Identify(by Caller, req agentapi.RegisterRequest, calls procinfo.Process) {
	if calls.PID == 0 {
		return
	}
	pid := watched(calls, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.rows[registrantKey{req.AppID, req.PID, by.registers()}]
	if row == nil || row.CallerPID != 0 || r.stopped {
		return
	}
	row.CallerPID, row.Program = calls.PID, calls.Program
	if pid != req.PID || row.process == nil {
		row.stop()
		row.process = r.hold(pid)
		r.watch(row)
	}
	r.notify()
}

// watched is the id of the process that a registration is for.
func watched(calls procinfo.Process, req agentapi.RegisterRequest) int {
	if procinfo.Calls(calls.PID, req.PID) {
		return calls.PID
	}
	return req.PID
}

// hold takes hold of a process; nil where the system offers none.
func (r *Registry) hold(pid int) procinfo.Handle {
	process, err := r.cfg.Open(pid)
	switch {
	case errors.Is(err, procinfo.ErrGone):
		return goneProcess{}
	case err != nil:
		return nil
	}
	return process
}

func checkRegistrant(req agentapi.RegisterRequest) error {
	if err := checkAppID(req.AppID); err != nil {
		return err
	}
	if req.PID < 1 {
		return agentapi.Errorf(agentapi.CodeInvalid, "The pid must be the process id of the app, a whole number above 0.")
	}
	if req.PID > procinfo.MaxPID {
		return agentapi.Errorf(agentapi.CodeInvalid, "The pid must be the process id of the app; this computer has none above %s.", strconv.Itoa(procinfo.MaxPID))
	}
	return nil
}

func checkAppID(appID string) error {
	odd := strings.IndexFunc(appID, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_'
	})
	if appID == "" || len(appID) > maxAppID || odd >= 0 {
		return agentapi.Errorf(agentapi.CodeInvalid,
			"The appId must have 1 to %d letters, digits, dots, hyphens and underscores, for example \"com.example.notes\".", maxAppID)
	}
	return nil
}

func full() error {
	return &agentapi.Error{
		Code:       agentapi.CodeTooMany,
		Message:    "Too many apps are attached to this engine. Deregister one of them, or end it.",
		RetryAfter: agentapi.HeartbeatEvery,
	}
}

func stopping() error {
	return &agentapi.Error{
		Code:       agentapi.CodeUnavailable,
		Message:    "This engine is stopping, because nothing was attached to it any more. Start it again.",
		RetryAfter: time.Second,
	}
}

package access

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/broadcast"
)

const (
	// visitWindow is how long somebody may do nothing in an app before opening
	// it again is another line of activity.
	visitWindow = 30 * time.Minute

	maxVisits    = 8192 // visits under way that are remembered
	maxUnwritten = 1024 // lines waiting for the next flush
	writeEvery   = 2 * time.Second
)

// activity turns requests into visits and keeps what happened, on this computer
// only. A request never waits for the disk: lines gather in memory, bounded, and
// Run writes them in batches.
type activity struct {
	mu        sync.Mutex
	visits    map[visitKey]time.Time // last request; guarded by mu
	unwritten []agentapi.Activity    // oldest first; guarded by mu
	dropped   int                    // lines there was no room for; guarded by mu

	// writing is locked while lines go to the store: reading and clearing wait for
	// all that happened before, and no line is stored after it was cleared.
	writing sync.Mutex
	wake    broadcast.Signal // unwritten has lines
}

// visitKey is somebody at an app: by browser, or by a remote client.
type visitKey struct{ account, app, client string }

// Opened notes a request of id that goes on to an app. The first of a visit
// becomes a line of activity under the label the app has now; client names the
// remote client of a bearer token.
func (a *Access) Opened(id Identity, email, appID, label string) {
	key := visitKey{id.AccountID, appID, id.ClientID}
	now := a.now()
	v := &a.activity
	v.mu.Lock()
	last, seen := v.visits[key]
	ongoing := seen && now.Sub(last).Abs() < visitWindow
	if seen || len(v.visits) < maxVisits || v.forget(now) {
		v.visits[key] = now
	}
	v.mu.Unlock()
	if ongoing {
		return
	}
	line := agentapi.Activity{At: now, Email: email, App: label, Kind: agentapi.ActivityOpened}
	if id.GrantID != "" {
		line.Kind, line.By = agentapi.ActivityClient, cmp.Or((*a.clients.Load())[id.GrantID], id.ClientID)
	}
	a.AddActivity(line)
}

// NameClients tells the names of the remote clients, by the id of their grant. One
// that has no name is shown by its client_id.
func (a *Access) NameClients(names map[string]string) { a.clients.Store(&names) }

// forget drops the visits that are over and says whether there is room now.
// mu is held.
func (v *activity) forget(now time.Time) bool {
	maps.DeleteFunc(v.visits, func(_ visitKey, last time.Time) bool { return now.Sub(last).Abs() >= visitWindow })
	return len(v.visits) < maxVisits
}

// AddActivity keeps a line; a zero At is now. It never waits for the disk, and
// drops the line when too many wait already, which is logged with their count.
func (a *Access) AddActivity(line agentapi.Activity) {
	if line.At.IsZero() {
		line.At = a.now()
	}
	line.At = line.At.UTC()
	v := &a.activity
	v.mu.Lock()
	if len(v.unwritten) < maxUnwritten {
		v.unwritten = append(v.unwritten, line)
	} else {
		v.dropped++
	}
	v.mu.Unlock()
	v.wake.Raise()
}

// writeActivity brings the waiting lines to the store. activity.writing is held.
func (a *Access) writeActivity() {
	v := &a.activity
	v.mu.Lock()
	lines, dropped := v.unwritten, v.dropped
	v.unwritten, v.dropped = nil, 0
	v.mu.Unlock()
	if dropped > 0 {
		a.log.Warn("more happened at once than could be written down", "lines_dropped", dropped)
	}
	if err := a.store.AddActivity(lines...); err != nil {
		a.log.Error("what happened could not be written down", "lines_dropped", len(lines), "err", err)
	}
}

func (a *Access) flushActivity() {
	a.activity.writing.Lock()
	defer a.activity.writing.Unlock()
	a.writeActivity()
}

// sweepActivity drops what is too old, of the store and of memory.
func (a *Access) sweepActivity() {
	now := a.now()
	a.activity.mu.Lock()
	a.activity.forget(now)
	a.activity.mu.Unlock()
	if err := a.store.SweepActivity(now); err != nil {
		a.log.Error("old activity could not be removed", "err", err)
	}
}

// Activity returns what happened, newest first, at most limit lines, and at most
// store.MaxActivity.
func (a *Access) Activity(limit int) ([]agentapi.Activity, error) {
	a.activity.writing.Lock()
	defer a.activity.writing.Unlock()
	a.writeActivity()
	lines, err := a.store.Activity(min(limit, store.MaxActivity))
	if err != nil {
		return nil, err
	}
	cutoff := a.now().Add(-store.ActivityLife)
	for len(lines) > 0 && lines[len(lines)-1].At.Before(cutoff) {
		lines = lines[:len(lines)-1] // not swept yet
	}
	return lines, nil
}

// ClearActivity forgets all of it. Visits under way stay known: going on with
// one is not opening an app.
func (a *Access) ClearActivity() error {
	a.activity.writing.Lock()
	defer a.activity.writing.Unlock()
	a.writeActivity()
	return a.store.ClearActivity()
}

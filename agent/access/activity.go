package access

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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
	maxUnwritten = 1024 // lines waiting for the next flush, of visits and of all else
	writeEvery   = 2 * time.Second
)

// activity turns requests into visits and keeps what happened, on this computer
// only. A request never waits for the disk: lines gather in memory, bounded, and
// Run writes them in batches. A decision is written at once.
type activity struct {
	mu        sync.Mutex
	visits    map[visitKey]time.Time // last request; guarded by mu
	unwritten []agentapi.Activity    // oldest first; guarded by mu
	began     []store.Visited        // members' visits since the last flush; guarded by mu
	ofVisits  int                    // how many of unwritten are; guarded by mu
	dropped   int                    // lines there was no room for; guarded by mu

	// writing is locked while lines go to the store: reading and clearing wait for
	// all that happened before, and no line is stored after it was cleared.
	writing sync.Mutex
	wake    broadcast.Signal // unwritten has lines

	version atomic.Uint64 // see ActivityVersion
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
	a.noteVisit(id, email, appID, label)
	a.AddActivity(line)
}

// NameClients tells the names of the remote clients, by the id of a grant and by their
// client_id, by which one is shown that has no name.
func (a *Access) NameClients(names map[string]string) { a.clients.Store(&names) }

// forget drops the visits that are over and says whether there is room now.
// mu is held.
func (v *activity) forget(now time.Time) bool {
	maps.DeleteFunc(v.visits, func(_ visitKey, last time.Time) bool { return now.Sub(last).Abs() >= visitWindow })
	return len(v.visits) < maxVisits
}

// AddActivity keeps a line; a zero At is now. A decision is on the disk when it
// returns, so that who is told of one finds it after a crash too. Visits and what
// strangers can cause never wait for the disk, and are dropped when too many wait
// already, which is logged with their count.
func (a *Access) AddActivity(line agentapi.Activity) {
	if line.At.IsZero() {
		line.At = a.now()
	}
	line.At = line.At.UTC()
	a.activity.gather(line)
	if agentapi.GroupOf(line.Kind) == agentapi.GroupDecisions && !store.Counted(line.Kind) {
		a.flushActivity()
		return
	}
	a.activity.wake.Raise()
}

// gather has a line wait for the next flush.
func (v *activity) gather(line agentapi.Activity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if store.Counted(line.Kind) {
		for i := range v.unwritten {
			if store.FoldActivity(&v.unwritten[i], line) {
				return
			}
		}
	}
	visit := agentapi.GroupOf(line.Kind) == agentapi.GroupVisits
	switch {
	case visit && v.ofVisits >= maxUnwritten, !visit && len(v.unwritten)-v.ofVisits >= maxUnwritten:
		v.dropped++
		return
	case visit:
		v.ofVisits++
	}
	v.unwritten = append(v.unwritten, line)
}

// writeActivity brings the waiting lines to the store. activity.writing is held.
func (a *Access) writeActivity() {
	a.tellFirstVisits()
	v := &a.activity
	v.mu.Lock()
	lines, dropped := v.unwritten, v.dropped
	v.unwritten, v.ofVisits, v.dropped = nil, 0, 0
	v.mu.Unlock()
	if dropped > 0 {
		a.log.Warn("more happened at once than could be written down", "lines_dropped", dropped)
	}
	if len(lines) == 0 {
		return
	}
	for i, line := range lines { // a client may open something before its grant was read
		if line.Kind == agentapi.ActivityClient {
			lines[i].By = cmp.Or((*a.clients.Load())[line.By], line.By)
		}
	}
	if err := a.store.AddActivity(lines...); err != nil {
		a.log.Error("what happened could not be written down", "lines", len(lines), "err", err)
		v.takeBack(lines)
		return
	}
	v.version.Add(1)
	a.changes.Raise()
}

// takeBack has what is no visit wait for another try.
func (v *activity) takeBack(lines []agentapi.Activity) {
	lines = slices.DeleteFunc(lines, func(line agentapi.Activity) bool { return agentapi.GroupOf(line.Kind) == agentapi.GroupVisits })
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(lines)+len(v.unwritten)-v.ofVisits > maxUnwritten {
		v.dropped += len(lines)
		return
	}
	v.unwritten = append(lines, v.unwritten...)
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

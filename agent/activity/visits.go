package activity

import (
	"cmp"
	"maps"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

const (
	// visitWindow is how long somebody may do nothing in an app before opening
	// it again is another line of activity.
	visitWindow = 30 * time.Minute

	maxVisits = 8192 // visits under way that are remembered
)

// visitKey is somebody at an app: by browser, or by a program; see Visit.program.
type visitKey struct{ account, app, client string }

// Visit is somebody at an app that has the label now.
type Visit struct {
	store.Visited
	Owner             bool   // of this computer
	GrantID, ClientID string // of a remote client; empty for everybody else
	PasswordID        string // of an app password or a device's certificate
	Sender            string // what the owner called a named sender; empty for a person
}

// program is what the visitor comes by, where that is no browser of theirs. A member's
// app passwords and devices count as the member.
func (v Visit) program() string {
	if v.Owner {
		return cmp.Or(v.ClientID, v.PasswordID)
	}
	return v.ClientID
}

// Opened notes a request that goes on to an app. The first of a visit becomes a line.
func (l *Log) Opened(v Visit) {
	key := visitKey{v.AccountID, v.AppID, v.program()}
	now := l.cfg.Now()
	l.mu.Lock()
	last, seen := l.visits[key]
	ongoing := seen && now.Sub(last).Abs() < visitWindow
	if v.GrantID != "" && l.called(v.GrantID, now) {
		ongoing = false // a grant's first call is a line, also of a client that was here by another one
	}
	if seen || len(l.visits) < maxVisits || l.forget(now) {
		l.visits[key] = now
	}
	// Whether it is a member's first of that app is on the disk, for which a request never
	// waits: it is looked at with the next flush.
	if !ongoing && !v.Owner && v.GrantID == "" && v.Sender == "" && l.cfg.OnFirstVisit != nil && len(l.began) < maxUnwritten {
		l.began = append(l.began, v.Visited)
	}
	l.mu.Unlock()
	if ongoing {
		return
	}
	line := agentapi.Activity{At: now, Email: v.Email, App: v.Label, Kind: agentapi.ActivityOpened}
	switch names := *l.clients.Load(); {
	case v.Sender != "":
		line.Kind, line.Email, line.What = agentapi.ActivityDelivered, "", v.Sender
	case v.GrantID != "":
		line.Kind, line.By = agentapi.ActivityClient, cmp.Or(names[v.GrantID], v.ClientID)
	case v.program() != "":
		line.Kind, line.By = agentapi.ActivityClient, names[v.PasswordID]
	}
	l.Add(line)
}

// NameClients tells the names of the remote clients, by the id of a grant and by their
// client_id, by which one is shown that has no name, and of app passwords and devices by their ids.
func (l *Log) NameClients(names map[string]string) { l.clients.Store(&names) }

// forget drops the visits that are over and says whether there is room now.
// mu is held.
func (l *Log) forget(now time.Time) bool {
	maps.DeleteFunc(l.visits, func(_ visitKey, last time.Time) bool { return now.Sub(last).Abs() >= visitWindow })
	return len(l.visits) < maxVisits
}

// Visits counts how often people opened each app, by its label then, among the newest
// maxScan visits. It is counted at the start and once an hour, so that a menu of the most
// used apps does not change with every visit. The map is read only.
func (l *Log) Visits() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened
}

// countVisits counts them anew. What programs do, by the clock often, says nothing of what
// people use.
func (l *Log) countVisits() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.write()
	opened := map[string]int{}
	if _, _, err := l.cfg.Store.ActivityPage(store.ActivityQuery{Limit: 1, Scan: maxScan, Group: agentapi.GroupVisits, Keep: func(line agentapi.Activity) bool {
		if line.Kind == agentapi.ActivityOpened {
			opened[line.App]++
		}
		return false
	}}); err != nil {
		l.cfg.Log.Warn("which apps are used most could not be counted", "err", err)
		return
	}
	l.mu.Lock()
	changed := !maps.Equal(l.opened, opened)
	l.opened = opened
	l.mu.Unlock()
	if changed {
		l.cfg.Changes.Raise()
	}
}

// tellFirstVisits tells of the first visits among those that began. writing is held,
// and the lines of these visits are not written yet.
func (l *Log) tellFirstVisits() {
	l.mu.Lock()
	began := l.began
	l.began = nil
	l.mu.Unlock()
	if len(began) == 0 {
		return
	}
	first, err := l.cfg.Store.FirstVisits(began)
	if err != nil {
		l.cfg.Log.Error("whether a visit was somebody's first could not be told", "err", err)
	}
	for _, visit := range first {
		l.cfg.OnFirstVisit(visit)
	}
}

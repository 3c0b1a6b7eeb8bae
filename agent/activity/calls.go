package activity

import (
	"maps"
	"time"

	"porchlight/agent/store"
)

// maxCallers bounds the grants whose calls are counted; of one more, whoever called
// longest ago is forgotten.
const maxCallers = 1000

// called counts a request by a grant, and says whether it is the first. mu is held.
func (l *Log) called(grantID string, now time.Time) (first bool) {
	before, known := l.calls[grantID]
	if !known && len(l.calls) >= maxCallers {
		l.forgetCaller()
	}
	l.calls[grantID] = store.Calls{Last: now, Today: today(before, now) + 1}
	l.callsUnkept = true
	return !known
}

// forgetCaller makes room for another grant. mu is held.
func (l *Log) forgetCaller() {
	var longest string
	for id, c := range l.calls {
		if longest == "" || c.Last.Before(l.calls[longest].Last) {
			longest = id
		}
	}
	delete(l.calls, longest)
}

// Calls are how often a grant has asked something of an app since midnight, local time,
// and when it did last; zero for one that never did.
func (l *Log) Calls(grantID string) (callsToday int, last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.calls[grantID]
	return today(c, l.cfg.Now()), c.Last
}

func today(c store.Calls, now time.Time) int {
	year, month, day := now.Local().Date()
	if y, m, d := c.Last.Local().Date(); y != year || m != month || d != day {
		return 0
	}
	return c.Today
}

// keepCalls writes the counts to the store, where there are others than before. A crash
// loses what was counted since.
func (l *Log) keepCalls() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	calls, unkept := maps.Clone(l.calls), l.callsUnkept
	l.callsUnkept = false
	l.mu.Unlock()
	if !unkept {
		return
	}
	if err := l.cfg.Store.SaveCalls(calls); err != nil {
		l.cfg.Log.Warn("how often connected apps called could not be kept", "err", err)
	}
	l.cfg.Changes.Raise()
}

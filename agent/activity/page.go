package activity

import (
	"errors"
	"slices"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// maxScan is how many lines are looked at for one page of what is searched for.
const maxScan = 5000

// Lines returns what happened, newest first, at most limit lines, and at most
// store.MaxActivity.
func (l *Log) Lines(limit int) ([]agentapi.Activity, error) {
	page, err := l.read(store.ActivityQuery{Limit: min(limit, store.MaxActivity)})
	return page.Lines, err
}

// page is the part of it that is asked for. It can have fewer lines than its limit and
// still name what to go on with: no more than maxScan are looked at in one go.
func (l *Log) page(q agentapi.ActivityQuery) (agentapi.ActivityPage, error) {
	return l.read(store.ActivityQuery{
		Before: q.Before, Limit: q.Limit, Scan: maxScan, Group: q.Group,
		Keep: func(line agentapi.Activity) bool { return matches(q, line) },
	})
}

// read reads after all that happened before is written.
func (l *Log) read(q store.ActivityQuery) (agentapi.ActivityPage, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.write()
	cutoff, keep := l.cfg.Now().Add(-store.ActivityLife), q.Keep
	q.Keep = func(line agentapi.Activity) bool {
		return !line.At.Before(cutoff) && (keep == nil || keep(line)) // what is too old may not be swept yet
	}
	lines, next, err := l.cfg.Store.ActivityPage(q)
	for i := range lines {
		lines[i].You = lines[i].You || l.owners(lines[i].Email) // an earlier version kept it of none
	}
	return agentapi.ActivityPage{Lines: lines, Next: next}, err
}

// matches says whether a line is about the app and the person asked for, and has
// every word.
func matches(q agentapi.ActivityQuery, line agentapi.Activity) bool {
	if q.App != "" && q.App != line.App || q.Email != "" && q.Email != line.Email {
		return false
	}
	text := strings.ToLower(strings.Join([]string{line.Email, line.App, line.By, line.What, line.Program}, "\n"))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(q.Search)), func(word string) bool { return !strings.Contains(text, word) })
}

// Version changes whenever Page may answer something else, but for lines
// that only grew too old.
func (l *Log) Version() uint64 { return l.version.Load() }

// Clear forgets all of it, the counts of calls and visits too. Visits under way stay known: going on with
// one is not opening an app.
func (l *Log) Clear() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.write()
	l.mu.Lock()
	clear(l.calls)
	l.opened = nil
	l.mu.Unlock()
	err := errors.Join(l.cfg.Store.ClearActivity(), l.cfg.Store.SaveCalls(nil))
	l.version.Add(1)
	l.cfg.Changes.Raise()
	return err
}

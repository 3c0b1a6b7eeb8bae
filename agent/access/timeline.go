package access

import (
	"slices"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// maxScan is how many lines are looked at for one page of what is searched for.
const maxScan = 5000

// Activity returns what happened, newest first, at most limit lines, and at most
// store.MaxActivity.
func (a *Access) Activity(limit int) ([]agentapi.Activity, error) {
	page, err := a.readActivity(store.ActivityQuery{Limit: min(limit, store.MaxActivity)})
	return page.Lines, err
}

// ActivityPage returns the part of it that is asked for. A page can have fewer lines
// than its limit and still name what to go on with: no more than maxScan are looked
// at in one go.
func (a *Access) ActivityPage(q agentapi.ActivityQuery) (agentapi.ActivityPage, error) {
	return a.readActivity(store.ActivityQuery{
		Before: q.Before, Limit: q.Limit, Scan: maxScan, Group: q.Group,
		Keep: func(line agentapi.Activity) bool { return matches(q, line) },
	})
}

// readActivity reads after all that happened before is written.
func (a *Access) readActivity(q store.ActivityQuery) (agentapi.ActivityPage, error) {
	a.activity.writing.Lock()
	defer a.activity.writing.Unlock()
	a.writeActivity()
	cutoff, keep := a.now().Add(-store.ActivityLife), q.Keep
	q.Keep = func(line agentapi.Activity) bool {
		return !line.At.Before(cutoff) && (keep == nil || keep(line)) // what is too old may not be swept yet
	}
	lines, next, err := a.store.ActivityPage(q)
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

// ActivityVersion changes whenever ActivityPage may answer something else, but for lines
// that only grew too old.
func (a *Access) ActivityVersion() uint64 { return a.activity.version.Load() }

// ClearActivity forgets all of it. Visits under way stay known: going on with
// one is not opening an app.
func (a *Access) ClearActivity() error {
	a.activity.writing.Lock()
	defer a.activity.writing.Unlock()
	a.writeActivity()
	err := a.store.ClearActivity()
	a.activity.version.Add(1)
	a.changes.Raise()
	return err
}

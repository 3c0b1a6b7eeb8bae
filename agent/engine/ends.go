package engine

import (
	"context"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/words"
)

// An approval may end. It does at a time of this computer's clock, or when as much time
// has passed as it was given for, whichever comes first. How much has passed is counted by
// how long the computer has run, asleep or awake, which nobody can set: a clock that is set
// back gains no time. The count is kept every minute. A restart goes on from there with
// what the clock says was missed, and no less than the computer has run since; so time can
// be gained only while the computer is off, and no more of it than that.

// untilOf reads an end as the owner gave it: nil keeps the one there is, zero is none.
func (a *Apps) untilOf(text string) (*time.Time, error) {
	now := a.cfg.Now()
	text, err := agentapi.CheckedUntil(text, now.Local())
	switch {
	case err != nil, text == "":
		return nil, err
	case text == agentapi.UntilNever:
		return &time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err == nil && !at.After(now) {
		err = agentapi.Errorf(agentapi.CodeInvalid, "That end has passed already. Choose a later one.")
	}
	if err == nil {
		err = a.keepCount()
	}
	return &at, err
}

// endsOf is when an approval ends after it was given once more.
func endsOf(was *store.Ends, e event) *store.Ends {
	switch {
	case e.Until == nil:
		return was
	case e.Until.IsZero():
		return nil
	}
	const longest = 100 * 366 * 24 * time.Hour // keeps the sum in range
	return &store.Ends{At: e.Until.UTC(), Passed: e.Passed + min(e.Until.Sub(e.At), longest)}
}

// hasEnded says whether the end of an approval has come.
func hasEnded(app *store.App, e event) bool {
	return app.Ends != nil && (!e.At.Before(app.Ends.At) || e.Passed >= app.Ends.Passed)
}

// approvalEnded tells the owner that an approval came to its end.
func approvalEnded(app store.App, e event) agentapi.Notice {
	text := words.Text{words.Of("%[1]s was approved until %[2]s. Its address is gone, and who could open it is forgotten.",
		app.Label, agentapi.LastDay(app.Ends.At, e.At))}
	return agentapi.Notice{At: e.At, Kind: agentapi.NoticeEnded, App: app.Name, Text: text.String(), Words: text}
}

// Woke has AwaitEnds look: the computer slept, and timers with it, or its clock was set.
func (a *Apps) Woke() { a.ends.Raise() }

// AwaitEnds revokes the apps whose approval ends, each then, until ctx ends.
func (a *Apps) AwaitEnds(ctx context.Context) error {
	changed, cancel := a.ends.Subscribe()
	defer cancel()
	next := time.NewTimer(a.EndDue(ctx))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			a.EndDue(ctx) // for the count
			return nil
		case <-changed:
		case <-next.C:
		}
		next.Reset(a.EndDue(ctx))
	}
}

// EndDue revokes the apps whose approval has ended, and says when to look again.
func (a *Apps) EndDue(ctx context.Context) (next time.Duration) {
	const keepEvery = time.Minute
	next = time.Hour
	var due []string
	a.mu.Lock()
	e := event{Kind: onEnd, At: a.cfg.Now(), Passed: a.passed()}
	for name, row := range a.rows {
		switch {
		case row.App == nil || row.App.Ends == nil:
		case hasEnded(row.App, e):
			due = append(due, name)
		default:
			next = min(next, keepEvery, row.App.Ends.At.Sub(e.At), row.App.Ends.Passed-e.Passed)
		}
	}
	a.mu.Unlock()
	for _, name := range due {
		if _, _, err := a.apply(ctx, name, e); err != nil && ctx.Err() == nil {
			a.cfg.Log.Warn("an approval that is over was not ended", "name", name, "err", err)
		}
	}
	if next <= keepEvery {
		if err := a.keepCount(); err != nil {
			a.cfg.Log.Error("how long approvals have lasted could not be kept for a restart", "err", err)
		}
	}
	return next + time.Millisecond
}

// passed is how much time has passed for approvals that end. mu is held.
func (a *Apps) passed() time.Duration { return a.count.Passed + a.cfg.SinceBoot() - a.count.Since }

// readCount goes on counting where an earlier run stopped.
func (a *Apps) readCount() error {
	kept, err := a.cfg.Store.Count()
	run := a.cfg.SinceBoot()
	a.count = store.Count{Passed: kept.Passed, Since: run}
	if kept.At.IsZero() {
		return err
	}
	missed := run - kept.Since
	if missed < 0 {
		missed = run // since the computer was started anew
	}
	a.count.Passed += max(missed, a.cfg.Now().Sub(kept.At))
	return err
}

// keepCount has a restart go on counting from here.
func (a *Apps) keepCount() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cfg.Store.SaveCount(store.Count{Passed: a.passed(), At: a.cfg.Now(), Since: a.cfg.SinceBoot()})
}

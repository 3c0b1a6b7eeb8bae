package engine

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"maps"
	"reflect"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// apply is the one way a row changes: decide, store, swap, close, tell.
func (a *Apps) apply(ctx context.Context, name string, e event) (out outcome, closed agentapi.Closed, err error) {
	if ctx.Err() != nil {
		return out, closed, agentapi.Errorf(agentapi.CodeUnavailable, "The request was given up before anything was changed.")
	}
	began := time.Now()
	e.At = a.cfg.Now()
	out, changed, err := a.decide(name, e)
	if err != nil {
		return out, closed, err
	}
	closed.OK = true
	if out.Gone != "" {
		closed = a.cfg.OnGone(out.Gone)
		closed.Milliseconds = int(time.Since(began).Milliseconds())
	}
	if out.reached && a.cfg.OnReached != nil {
		a.cfg.OnReached(out.App.ID, e.Kind.byOwner())
	}
	if changed {
		a.tellHappened(happened(name, e, out, closed.Closed)...)
		a.cfg.Log.Info("published app", "name", name, "event", string(e.Kind), "connections_closed", closed.Closed)
		a.cfg.Changes.Raise()
	}
	return out, closed, nil
}

// decide asks next and keeps what it says.
func (a *Apps) decide(name string, e event) (out outcome, changed bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.rows[name]
	e.LabelTaken = a.labelTaken(name, now, e)
	e.PortTaken = now.App != nil && slices.Contains(a.cfg.OwnPorts, now.App.LocalPort)
	e.AskedLately = e.At.Before(a.asked[name].Add(askAgainAfter))
	e.AskAgain = a.cfg.AskAgain != nil && a.cfg.AskAgain()
	e.Own, e.Passed = a.cfg.Own, a.passed()
	if out, err = next(now, e); err != nil {
		return out, false, err
	}
	out.App = asking(written(out.App, e), e)
	if out.App != nil && out.App.Name == "" { // new; one that stays is being read
		out.App.Name = name
		for i := range out.Notices {
			out.Notices[i].App = name
		}
	}
	if err := a.checkRoom(now, out, e.By); err != nil {
		return outcome{stored: now}, false, err
	}
	if reflect.DeepEqual(out.stored, now) && len(out.Notices) == 0 {
		return out, false, nil
	}
	out.reached, out.before = reachedAnew(now.App, out.App), now.App
	former := formerOf(now.App, out.App)
	notices, err := a.cfg.Store.ChangeApp(store.AppChange{Name: name, App: out.App, Denial: out.Denial, Notices: out.Notices, Former: former})
	if err != nil {
		a.cfg.Log.Error("cannot store a published app", "name", name, "err", err)
	}
	if err != nil && e.Kind != onEnd { // what has ended would end anew after a restart
		return out, false, agentapi.Errorf(agentapi.CodeInternal,
			"Porchlight could not write to its data directory, so nothing was changed. Is the disk full?")
	}
	if err == nil {
		a.notices = notices
	}
	if former != "" {
		a.formers[name] = store.WithFormer(a.formers[name], former)
	}
	a.remember(name, now, out, e.At)
	if out.App == nil && out.Denial == nil {
		delete(a.rows, name)
	} else {
		a.rows[name] = out.stored
	}
	if out.Gone != "" || out.App == nil {
		a.looked.Delete(name)
	}
	a.swap()
	if e.Until != nil {
		a.ends.Raise()
	}
	return out, true, nil
}

// maxWritten bounds what is kept of a label with much white space around it, in bytes.
const maxWritten = 1024

// written is an app with its label as it was written last.
func written(app *store.App, e event) *store.App {
	if app == nil {
		return nil
	}
	as := app.Written
	if e.Written != "" && e.Label == app.Label {
		as = e.Written
		if len(as) > maxWritten {
			as = e.Label
		}
	} else if clean, err := cleanLabel(as); err != nil || clean != app.Label {
		as = "" // that was another label
	}
	if as != app.Written {
		changed := *app
		changed.Written = as
		return &changed
	}
	return app
}

// asking is an app with what asks, of a request that waits; what follows from who listens
// is asked for by nobody.
func asking(app *store.App, e event) *store.App {
	if app == nil {
		return nil
	}
	asks := app.Asks
	switch {
	case app.Status != agentapi.StatusPending:
		asks = nil
	case e.Kind == onPublish && e.Asks == (agentapi.Asks{}):
		asks = nil
	case e.Kind == onPublish:
		asks = &e.Asks
	}
	if asks == app.Asks {
		return app
	}
	changed := *app
	changed.Asks = asks
	return &changed
}

// formerOf is the id that a name has before a change and not after it, if any.
func formerOf(before, after *store.App) string {
	if before == nil || after != nil && after.ID == before.ID {
		return ""
	}
	return before.ID
}

// askAgainAfter is how long a name stays quiet after its request rang: a program that
// asks and withdraws in a loop must not ring again and again.
const askAgainAfter = time.Minute

// remember notes when a request for a name rings. What is older than askAgainAfter
// has no effect and is dropped.
func (a *Apps) remember(name string, now stored, out outcome, at time.Time) {
	asks := func(app *store.App) bool { return app != nil && app.Status == agentapi.StatusPending }
	if asks(now.App) || !asks(out.App) || out.App.Quiet {
		return
	}
	maps.DeleteFunc(a.asked, func(_ string, then time.Time) bool { return !at.Before(then.Add(askAgainAfter)) })
	a.asked[name] = at
}

// labelTaken says whether another approved app has the label the event needs.
// Requests do not hold their labels: a program could otherwise block any name
// just by asking.
func (a *Apps) labelTaken(name string, now stored, e event) bool {
	label := e.Label
	switch {
	case e.Kind == onApprove && now.App != nil:
		label = now.App.Label
	case e.Kind != onPublish && e.Kind != onShare:
		return false
	}
	folded := foldLabel(label)
	for _, app := range a.shown.Load().byLabel {
		if app.Name == name || app.ID == "" {
			continue
		}
		if app.folded == folded {
			return true
		}
		// One that asks again under another label still has the first.
		if was := a.rows[app.Name].App.Approved; was != nil && foldLabel(was.Label) == folded {
			return true
		}
	}
	return false
}

// checkRoom bounds how many rows there are, and how many of them wait for other
// users of the computer.
func (a *Apps) checkRoom(now stored, out outcome, by Caller) error {
	var pending, total, others, theirs, containers int
	for _, row := range a.rows {
		switch {
		case approved(row.App):
			total++
		case row.App != nil:
			pending++
			if row.App.Container != nil {
				containers++
			}
			if row.App.Asker != "" {
				others++
			}
			if row.App.Asker == by.asker() {
				theirs++
			}
		}
	}
	switch {
	case by.Stranger && now.App == nil && out.App != nil && (theirs >= maxPendingOfUser || others >= maxPendingOfOthers):
		return agentapi.Errorf(agentapi.CodeTooMany,
			"Apps of your user wait for the owner of this Porchlight already, as many as may. Ask the owner to decide about them first.")
	case by.Container != nil && now.App == nil && out.App != nil && containers >= maxPendingOfContainers:
		return agentapi.Errorf(agentapi.CodeTooMany, "%d containers wait for the owner's decision; no more can ask until some are decided.", maxPendingOfContainers)
	case now.App == nil && out.App != nil && pending >= maxPending:
		return agentapi.Errorf(agentapi.CodeTooMany,
			"%d apps are waiting for the owner's decision; no more can ask until some are decided.", maxPending)
	case !approved(now.App) && approved(out.App) && total >= maxApproved:
		return agentapi.Errorf(agentapi.CodeConflict, "%d apps are approved, which is the most. Revoke one first.", maxApproved)
	}
	return nil
}

// newID is 128 random bits, URL-safe.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Package timeline is what happened, page by page, with what of it can still be taken
// back.
//
// A line of activity comes in, and whether an Undo would restore exactly what was
// before it goes out: read from the rooms that decide, not from the line. The Undo is a
// call of the same room. The package keeps nothing and decides nothing.
package timeline

import (
	"context"
	"slices"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/people"
	"porchlight/control/controlapi"
)

// maxBack is how many of the newest decisions can be undone.
const maxBack = 1000

// Timeline is safe for concurrent use.
type Timeline struct {
	access *access.Access
	apps   *engine.Apps
	people *people.People
	now    func() time.Time
}

// New makes it of the rooms it asks.
func New(access *access.Access, apps *engine.Apps, people *people.People) *Timeline {
	return &Timeline{access, apps, people, time.Now}
}

// Page is a part of what happened, with what can be undone marked.
func (t *Timeline) Page(q agentapi.ActivityQuery) (agentapi.ActivityPage, error) {
	latest, err := t.latest()
	if err != nil {
		return agentapi.ActivityPage{}, err
	}
	page, err := t.access.ActivityPage(q)
	for i, line := range page.Lines {
		page.Lines[i].Undo = latest[line.ID] && t.undo(line) != nil
	}
	return page, err
}

// Undo takes back what one line is about. It refuses with CodeConflict what it would not
// restore exactly.
func (t *Timeline) Undo(ctx context.Context, id uint64) error {
	latest, err := t.latest()
	if err != nil {
		return err
	}
	if latest[id] {
		page, err := t.access.ActivityPage(agentapi.ActivityQuery{Before: id + 1, Limit: 1})
		if err != nil {
			return err
		}
		if len(page.Lines) == 1 && page.Lines[0].ID == id {
			if undo := t.undo(page.Lines[0]); undo != nil {
				return undo(ctx)
			}
		}
	}
	return agentapi.Errorf(agentapi.CodeConflict, "This cannot be undone any more: something about it has changed since.")
}

// latest are the ids of the decisions after which nothing was decided about the same
// thing.
func (t *Timeline) latest() (map[uint64]bool, error) {
	page, err := t.access.ActivityPage(agentapi.ActivityQuery{Group: agentapi.GroupDecisions, Limit: maxBack})
	if err != nil {
		return nil, err
	}
	latest, newest, judged := map[uint64]bool{}, map[string]agentapi.Activity{}, map[string]bool{}
	for _, line := range page.Lines { // newest first
		subject, within := subjectOf(line)
		since, later := newest[subject]
		_, ended := newest[within]
		latest[line.ID] = subject != "" && !later && !ended
		switch {
		case subject != "" && !later:
			newest[subject] = line
		case later && !ended && !judged[subject]:
			// Who is invited once more had the app: to take it away is not what was before.
			judged[subject] = true
			if since.Owner && since.Kind == agentapi.ActivityInvited && gives(line.Kind) {
				latest[since.ID] = false
			}
		}
	}
	return latest, nil
}

// gives says whether somebody has an app after a line of this kind.
func gives(kind string) bool {
	switch kind {
	case agentapi.ActivityInvited, agentapi.ActivityGiven, agentapi.ActivityUntil, agentapi.ActivityRestored:
		return true
	}
	return false
}

// subjectOf is what a line decides about, and the larger thing that it is within.
func subjectOf(line agentapi.Activity) (subject, within string) {
	switch line.Kind {
	case agentapi.ActivityPaused, agentapi.ActivityResumed, agentapi.ActivityApproved, agentapi.ActivityRevoked, agentapi.ActivityStopped:
		return "app " + line.Name, ""
	case agentapi.ActivityDark, agentapi.ActivityLight:
		return "dark", ""
	case agentapi.ActivityRemoved, agentapi.ActivityLeft:
		return "person " + line.AccountID, ""
	case agentapi.ActivityInvited, agentapi.ActivityGiven, agentapi.ActivityWithdrawn, agentapi.ActivityUntil, agentapi.ActivityEnded, agentapi.ActivityRestored:
		if line.App == "" {
			return "person " + line.AccountID, ""
		}
		return "person " + line.AccountID + "\n" + line.App, "person " + line.AccountID
	}
	return "", ""
}

// undo is how to take back what a line is about, or nil where that would not restore
// exactly what was.
func (t *Timeline) undo(line agentapi.Activity) func(context.Context) error {
	if line.Notice > 0 {
		if !t.people.CanUndo(line.Notice) {
			return nil
		}
		return func(ctx context.Context) error { return t.people.Undo(ctx, line.Notice) }
	}
	if !line.Owner {
		return nil
	}
	switch line.Kind {
	case agentapi.ActivityPaused:
		if app, ok := t.apps.Lookup(line.Name); ok && app.Paused && app.Status == agentapi.StatusLive {
			return func(ctx context.Context) error {
				_, err := t.apps.Resume(ctx, line.Name)
				return err
			}
		}
	case agentapi.ActivityDark:
		if t.access.DarkSince() != nil {
			return func(context.Context) error { return t.access.LightUp() }
		}
	case agentapi.ActivityRemoved, agentapi.ActivityWithdrawn:
		return t.giveBack(line)
	case agentapi.ActivityGiven, agentapi.ActivityInvited:
		return t.takeAway(line)
	}
	return nil
}

// giveBack is for what was taken away: while it is held nothing has happened yet, and
// an app can be given to somebody active again as they had it.
func (t *Timeline) giveBack(line agentapi.Activity) func(context.Context) error {
	if t.people.Held(line.AccountID, line.App) {
		return func(context.Context) error {
			_, err := t.people.TakeBack(agentapi.HeldChange{AccountID: line.AccountID, App: line.App})
			return err
		}
	}
	app, live := t.live(line)
	row, known := t.people.Row(line.AccountID)
	over := !line.Until.IsZero() && !line.Until.After(t.now())
	if line.App == "" || !live || !known || row.Status != controlapi.PersonActive || has(row, app) || over {
		return nil
	}
	again := agentapi.AccessRequest{AccountID: line.AccountID, App: app.Label, Granted: true}
	if !line.Until.IsZero() {
		again.Until = line.Until.UTC().Format(time.RFC3339)
	}
	return func(ctx context.Context) error {
		_, err := t.people.SetAccess(ctx, people.Owner, again)
		return err
	}
}

// takeAway is for what was given: an app of somebody who has it as it was given, or an
// invitation that nobody has accepted.
func (t *Timeline) takeAway(line agentapi.Activity) func(context.Context) error {
	app, live := t.live(line)
	row, known := t.people.Row(line.AccountID)
	if !live || !known || !has(row, app) || !row.Until[app.ID].Equal(line.Until) {
		return nil
	}
	pending := row.Status == controlapi.PersonPending
	switch {
	case pending != (line.Kind == agentapi.ActivityInvited), !pending && row.Status != controlapi.PersonActive:
		return nil
	case pending && len(row.Apps) == 1:
		return func(ctx context.Context) error { return t.people.TakeBackInvitation(ctx, line.AccountID) }
	}
	return func(ctx context.Context) error {
		_, err := t.people.SetAccess(ctx, people.Owner, agentapi.AccessRequest{AccountID: line.AccountID, App: app.Label})
		return err
	}
}

// live is the app that a line is about, if it still has the label of then.
func (t *Timeline) live(line agentapi.Activity) (engine.App, bool) {
	app, ok := t.apps.ByLabel(line.App)
	return app, ok && app.ID != "" && (line.Name == "" || app.Name == line.Name)
}

func has(row controlapi.Person, app engine.App) bool { return slices.Contains(row.Apps, app.ID) }

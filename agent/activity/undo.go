package activity

import (
	"context"
	"slices"
	"strings"

	"porchlight/agent/agentapi"
)

// maxBack is how many of the newest decisions can be undone.
const maxBack = 1000

// Undo is how to take back what a line is about, as the room says that decides it; nil
// where that would not restore exactly what was.
type Undo func(line agentapi.Activity) func(context.Context) error

// Page is a part of what happened, with what can be undone marked.
func (l *Log) Page(q agentapi.ActivityQuery, undo Undo) (agentapi.ActivityPage, error) {
	latest, err := l.latest()
	if err != nil {
		return agentapi.ActivityPage{}, err
	}
	page, err := l.page(q)
	for i, line := range page.Lines {
		page.Lines[i].Undo = latest[line.ID] && undo(line) != nil
	}
	return page, err
}

// Undo takes back what one line is about. It refuses with CodeConflict what it would not
// restore exactly.
func (l *Log) Undo(ctx context.Context, id uint64, undo Undo) error {
	latest, err := l.latest()
	if err != nil {
		return err
	}
	if latest[id] {
		page, err := l.page(agentapi.ActivityQuery{Before: id + 1, Limit: 1})
		if err != nil {
			return err
		}
		if len(page.Lines) == 1 && page.Lines[0].ID == id {
			if back := undo(page.Lines[0]); back != nil {
				return back(ctx)
			}
		}
	}
	return agentapi.Errorf(agentapi.CodeConflict, "This cannot be undone any more: something about it has changed since.")
}

// latest are the ids of the decisions after which nothing was decided about the same
// thing.
func (l *Log) latest() (map[uint64]bool, error) {
	page, err := l.page(agentapi.ActivityQuery{Group: agentapi.GroupDecisions, Limit: maxBack})
	if err != nil {
		return nil, err
	}
	latest, newest, judged := map[uint64]bool{}, map[string]agentapi.Activity{}, map[string]bool{}
	for _, line := range page.Lines { // newest first
		subject, within := subjectOf(line)
		since, later := newest[subject]
		ended := slices.ContainsFunc(within, func(larger string) bool { _, after := newest[larger]; return after })
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

// NewestOf are the newest decisions about a person, by the label of an app; "" for those about
// all that they have here.
func (l *Log) NewestOf(accountID string) (map[string]agentapi.Activity, error) {
	page, err := l.page(agentapi.ActivityQuery{Group: agentapi.GroupDecisions, Limit: maxBack})
	newest := map[string]agentapi.Activity{}
	for _, line := range page.Lines { // newest first
		subject, _ := subjectOf(line)
		if _, later := newest[line.App]; !later && line.AccountID == accountID && strings.HasPrefix(subject, "person ") {
			newest[line.App] = line
		}
	}
	return newest, err
}

// gives says whether somebody has an app after a line of this kind.
func gives(kind string) bool {
	switch kind {
	case agentapi.ActivityInvited, agentapi.ActivityGiven, agentapi.ActivityUntil, agentapi.ActivityRestored:
		return true
	}
	return false
}

// subjectOf is what a line decides about, and the larger things that it is within.
func subjectOf(line agentapi.Activity) (subject string, within []string) {
	switch line.Kind {
	case agentapi.ActivityPaused, agentapi.ActivityResumed, agentapi.ActivityApproved, agentapi.ActivityRevoked, agentapi.ActivityStopped:
		return "app " + line.Name, nil
	case agentapi.ActivityDark, agentapi.ActivityLight:
		return "dark", nil
	case agentapi.ActivityGroupAdded, agentapi.ActivityGroupRemoved:
		return "group " + line.Group, nil
	case agentapi.ActivityGroupJoined, agentapi.ActivityGroupLeft:
		return "group " + line.Group + "\nperson " + line.AccountID, []string{"group " + line.Group, "person " + line.AccountID}
	case agentapi.ActivityGroupGiven, agentapi.ActivityGroupWithdrawn, agentapi.ActivityGroupEnded:
		return "group " + line.Group + "\napp " + line.App, []string{"group " + line.Group}
	case agentapi.ActivityRemoved, agentapi.ActivityLeft:
		return "person " + line.AccountID, nil
	case agentapi.ActivityInvited, agentapi.ActivityGiven, agentapi.ActivityWithdrawn, agentapi.ActivityUntil, agentapi.ActivityEnded, agentapi.ActivityRestored:
		if line.App == "" {
			return "person " + line.AccountID, nil
		}
		return "person " + line.AccountID + "\n" + line.App, []string{"person " + line.AccountID}
	}
	return "", nil
}

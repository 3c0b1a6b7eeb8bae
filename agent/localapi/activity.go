package localapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// What happened, for the owner to read.

const (
	// defaultActivity is how many lines are answered when nobody says.
	defaultActivity = 200

	// maxActivityPage is how many lines a page has at most.
	maxActivityPage = 1000

	// maxSearch bounds each text that is searched for, in bytes.
	maxSearch = 1000
)

func (a *API) activity(r *http.Request) (any, error) {
	limit, err := activityLimit(r.URL.Query(), store.MaxActivity)
	if err != nil {
		return nil, err
	}
	return a.cfg.Activity.Lines(limit)
}

func (a *API) activityPage(r *http.Request) (any, error) {
	values := r.URL.Query()
	limit, err := activityLimit(values, maxActivityPage)
	if err != nil {
		return nil, err
	}
	q := agentapi.ActivityQuery{Limit: limit, Group: values.Get("group"), App: values.Get("app"), Email: values.Get("email"), Search: values.Get("search")}
	if text := values.Get("before"); text != "" {
		if q.Before, err = strconv.ParseUint(text, 10, 64); err != nil || q.Before == 0 {
			return nil, invalid("What comes before has to be named by the number of a line.")
		}
	}
	groups := []string{"", agentapi.GroupVisits, agentapi.GroupDecisions, agentapi.GroupTrouble}
	if !slices.Contains(groups, q.Group) {
		return nil, invalid("The group has to be visits, decisions or trouble.")
	}
	if max(len(q.App), len(q.Email), len(q.Search)) > maxSearch {
		return nil, invalid("That is too long to search for.")
	}
	return a.cfg.Activity.Page(q, a.undoOf)
}

// undoActivity takes back what a line is about.
func (a *API) undoActivity(ctx context.Context, id uint64) error {
	if id == 0 {
		return nothingHere()
	}
	return a.cfg.Activity.Undo(ctx, id, a.undoOf)
}

// undoOf asks the rooms that decide.
func (a *API) undoOf(line agentapi.Activity) func(context.Context) error {
	for _, room := range []activity.Undo{a.cfg.People.UndoOf, a.cfg.Apps.UndoOf, a.cfg.Access.UndoOf} {
		if undo := room(line); undo != nil {
			return undo
		}
	}
	return nil
}

func activityLimit(values url.Values, most int) (int, error) {
	text := values.Get("limit")
	if text == "" {
		return defaultActivity, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, invalid("The limit must be a whole number from 1 to %d.", most)
	}
	return n, nil
}

func (a *API) clearActivity(*http.Request) (any, error) { return done, a.cfg.Activity.Clear() }

package localapi

import (
	"net/http"
	"strconv"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// defaultActivity is how many lines are answered when nobody says.
const defaultActivity = 200

func (a *API) activity(w http.ResponseWriter, r *http.Request) error {
	limit := defaultActivity
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > store.MaxActivity {
			return invalid("The limit must be a whole number from 1 to %d.", store.MaxActivity)
		}
		limit = n
	}
	lines, err := a.cfg.Access.Activity(limit)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, lines)
}

func (a *API) clearActivity(w http.ResponseWriter, _ *http.Request) error {
	if err := a.cfg.Access.ClearActivity(); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

package localapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"porchlight/agent/agentapi"
)

// requested answers what visitors asked of the apps, and waits for the first one
// where the caller wants that. It waits for less than readBodyIn, after which a
// connection counts as broken.
func (a *API) requested(r *http.Request) (any, error) {
	query := r.URL.Query()
	after, err := number(query, "after", 1<<63)
	if err != nil {
		return nil, err
	}
	wait, err := number(query, "wait", agentapi.MaxWait)
	if err != nil {
		return nil, err
	}
	app := query.Get("app")
	if _, ok := a.cfg.Apps.Lookup(app); !ok && app != "" {
		return nil, agentapi.NoApp()
	}
	// Before the first look: a request between the two is then not missed.
	changed, cancel := a.cfg.Requests.Changed()
	defer cancel()
	deadline, stop := context.WithTimeout(r.Context(), time.Duration(wait)*time.Second)
	defer stop()
	for {
		answer := a.requestsOf(app, after)
		if len(answer.Requests) > 0 || !answer.On {
			return answer, nil
		}
		select {
		case <-changed:
		case <-a.ending:
			return answer, nil
		case <-deadline.Done():
			return answer, nil
		}
	}
}

// requestsOf an app, or of all for an empty name.
func (a *API) requestsOf(app string, after uint64) agentapi.VisitorRequests {
	names := map[string]string{}
	for _, known := range a.cfg.Apps.Approved() {
		if app == "" || known.Name == app {
			names[known.ID] = known.Name
		}
	}
	answer := agentapi.VisitorRequests{On: a.cfg.Settings.Get().Requests}
	answer.Requests, answer.Seq = a.cfg.Requests.Since(after, names)
	return answer
}

// number is a whole number of the query, from 0 to most; 0 where it is not there.
func number(query url.Values, name string, most uint64) (uint64, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		return 0, invalid("The number %q must be a whole number from 0 to %d.", name, most)
	}
	return n, nil
}

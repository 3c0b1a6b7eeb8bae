package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Weakness: a client could be disconnected by an id alone, which nobody remembers.
// Checked: its name and the address of who connected it do, where they mean one connection;
// where they mean several, all are named and none is chosen.
func TestGrantCalled(t *testing.T) {
	t.Parallel()
	grants := []agentapi.Grant{
		{ID: "one", ClientName: "Pocket Notes", Email: "maya@example.com"},
		{ID: "two", ClientName: "Calendar", Email: "maya@example.com"},
		{ID: "three", ClientName: "Calendar", Email: bob},
		{ID: "four", ClientName: "one", Email: "lena@example.com"}, // as another one's id
		{ID: "five", ClientName: bob, Email: "lena@example.com"},   // as somebody's address
	}
	for word, want := range map[string]string{
		"two":              "two",
		"pocket notes":     "one",
		"one":              "one",
		"Calendar":         `"Calendar" may mean "Calendar" for maya@example.com (two), or "Calendar" for bob@example.com (three). Name it by its ID; see: porchlight grants`,
		"Maya@example.com": `"Maya@example.com" may mean "Pocket Notes" for maya@example.com (one), or "Calendar" for maya@example.com (two). Name it by its ID; see: porchlight grants`,
		bob:                `"bob@example.com" may mean "Calendar" for bob@example.com (three), or "bob@example.com" for lena@example.com (five). Name it by its ID; see: porchlight grants`,
		"Diary":            `"Diary" has no connection here. See: porchlight grants`,
		"":                 `"" has no connection here. See: porchlight grants`,
	} {
		id, err := grantCalled(grants, word)
		if err != nil && id == "" {
			id = err.Error()
		}
		if id != want {
			t.Errorf("%q: %s, want %s", word, id, want)
		}
	}
	var many []agentapi.Grant
	for n := range 30 {
		many = append(many, agentapi.Grant{ID: fmt.Sprint("id", n), ClientName: "Calendar", Email: bob})
	}
	if _, err := grantCalled(many, "Calendar"); !strings.Contains(fmt.Sprint(err), "(id4), or one of 25 more. Name it") {
		t.Errorf("of thirty: %v", err)
	}
}

// Weakness: an id was looked for in the list first, which waits for a control plane that does
// not answer, so that a lost device stayed connected meanwhile.
// And with the control plane away any word that could be an id was said to be disconnected.
// Checked: an id is ended before anything else is asked; a name that could be an id is still
// a name, and the list is asked for nothing else. Where nobody knows, that is what is said.
func TestGrantRevokedByIDAtOnce(t *testing.T) {
	t.Parallel()
	const id, earlier, name = "abcdefghijklmnopqrstuvwxyz", "bcdefghijklmnopqrstuvwxyz2", "pocketnotesforeverybodyhere"
	const stranger = "zyxwvutsrqponmlkjihgfedcba"
	var asked []string
	var away, unread bool // the control plane; so that not even a list was read before
	agent := http.NewServeMux()
	agent.HandleFunc("GET /owner/grants", func(w http.ResponseWriter, _ *http.Request) {
		asked = append(asked, "list")
		w.Header().Set("Content-Type", "application/json")
		if unread {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(agentapi.ErrorBody{Error: "The control plane does not answer."})
			return
		}
		_ = json.NewEncoder(w).Encode([]agentapi.Grant{{ID: id, ClientName: name, Email: bob}})
	})
	agent.HandleFunc("POST /owner/grants/{id}/revoke", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.PathValue("id"))
		w.Header().Set("Content-Type", "application/json")
		if got := r.PathValue("id"); got != id && got != earlier {
			if away {
				_ = json.NewEncoder(w).Encode(agentapi.Closed{OK: true, Uncertain: true})
				return
			}
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(agentapi.ErrorBody{Error: "There is no such connected app."})
			return
		}
		_ = json.NewEncoder(w).Encode(agentapi.Closed{OK: true, Closed: 2})
	})
	server := httptest.NewServer(agent)
	defer server.Close()
	client := agentapi.New(server.Listener.Addr().String())
	for _, step := range []struct {
		word         string
		away, unread bool
		want         []string
		code         agentapi.Code
		uncertain    bool
	}{
		{word: id, want: []string{id}},
		{word: earlier, want: []string{earlier}}, // of another login of the same row
		{word: name, want: []string{name, "list", id}},
		{word: bob, want: []string{"list", id}},
		{word: stranger, want: []string{stranger, "list"}, code: agentapi.CodeNotFound},
		{word: id, away: true, want: []string{id}},
		{word: name, away: true, want: []string{name, "list", id}},
		{word: stranger, away: true, want: []string{stranger, "list"}, uncertain: true},
		{word: stranger, away: true, unread: true, want: []string{stranger, "list"}, uncertain: true},
	} {
		asked, away, unread = nil, step.away, step.unread
		closed, err := revokeGrant(t.Context(), client, step.word)
		if agentapi.CodeOf(err) != step.code || closed.OK != (err == nil) || closed.Uncertain != step.uncertain || !slices.Equal(asked, step.want) {
			t.Errorf("%+v: %+v, %v; asked %q", step, closed, err, asked)
		}
	}
	var said strings.Builder
	newTerminal(&said, nil).revoked("Disconnected", "a connection", stranger, agentapi.Closed{OK: true, Uncertain: true})
	if got := said.String(); !strings.Contains(got, "nobody here knows whether \""+stranger+"\" is a connection") || strings.Contains(got, "Disconnected") {
		t.Errorf("it says %q", got)
	}
}

// The list says what each client opens.
func TestGrantsSayWhatTheyOpen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	programs.Must(t, newTerminal(&out, io.Discard).printGrants([]agentapi.Grant{
		{ClientName: "All", Email: bob}, {ClientName: "One", Email: bob, Apps: []string{"Notes"}}, {ClientName: "Two", Email: bob, Apps: []string{"Notes", "Photos"}},
	}))
	for _, want := range []string{`All +bob@example.com +all they may open +`, `One +bob@example.com +Notes  +`, `Two +bob@example.com +Notes and Photos +`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("there is no %q in:\n%s", want, out.String())
		}
	}
}

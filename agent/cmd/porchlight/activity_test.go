package main

import (
	"os"
	"regexp"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Every kind of activity that there is has words at the command line.
func TestActivityWords(t *testing.T) {
	t.Parallel()
	source := programs.Got(os.ReadFile("../../agentapi/activity.go"))(t)
	kinds := regexp.MustCompile(`(?m)^\tActivity\w+\s+= "([\w-]+)"`).FindAllSubmatch(source, -1)
	if len(kinds) < 40 || len(kinds) != len(activityWords) {
		t.Errorf("%d kinds, and words for %d", len(kinds), len(activityWords))
	}
	for _, kind := range kinds {
		if activityWords[string(kind[1])] == "" {
			t.Errorf("no words for %s", kind[1])
		}
	}
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.Local)
	for want, line := range map[string]agentapi.Activity{
		"opened":             {Kind: "opened"},
		"opened with Pocket": {Kind: "client", By: "Pocket"},
		"was invited by you, until 2026-11-28 12:00": {Kind: "invited", Owner: true, Until: at},
		"was paused by you (connections closed: 2)":  {Kind: "paused", Owner: true, Closed: 2},
		"was turned away, 40 times":                  {Kind: "turned-away", Count: 40},
		"the certificate was renewed":                {Kind: "certificate-renewed"},
		"an app password was made":                   {Kind: "password-made"},
		"of-tomorrow wiki":                           {Kind: "of-tomorrow", By: "wiki"},
	} {
		if got := whatHappened(line); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, line := range map[string]agentapi.Activity{
		"bob@example.com was invited by you: Notes":              {Kind: "invited", Owner: true, Email: "bob@example.com", App: "Notes"},
		"bob@example.com had this app taken away by wiki: Notes": {Kind: "withdrawn", By: "wiki", Email: "bob@example.com", App: "Notes"},
		"Notes was paused by you":                                {Kind: "paused", Owner: true, App: "Notes"},
		"everything was closed by you":                           {Kind: "dark", Owner: true},
	} {
		if got := inOneSentence(line); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

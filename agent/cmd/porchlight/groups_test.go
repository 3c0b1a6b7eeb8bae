package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// TestGroupsShapes is the contract of --json for groups, told as one story.
func TestGroupsShapes(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("notes", "Notes", http.NotFoundHandler())
	s.publishing("photos", "Our Photos", http.NotFoundHandler())
	s.ok("people", "invite", bob, "--app", "Notes")
	until := time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
	for _, step := range []struct {
		args    []string
		apps    []string
		members int
	}{
		{[]string{"add", "Family"}, []string{}, 0},
		{[]string{"join", "family", bob}, []string{}, 1},
		{[]string{"grant", "Family", "--app", "Our Photos", "--until", until}, []string{"Our Photos"}, 1},
		{[]string{"grant", "Family", "notes"}, []string{"Notes", "Our Photos"}, 1},
		{[]string{"withdraw", "Family", "--app", "notes"}, []string{"Our Photos"}, 1},
		{[]string{"leave", "Family", bob}, []string{"Our Photos"}, 0},
	} {
		var changed agentapi.GroupChanged
		s.json(&changed, append([]string{"groups"}, step.args...)...)
		g := changed.Group
		if !changed.OK || g.Name != "Family" || g.ID == "" || !slices.Equal(g.Apps, step.apps) || len(g.Members) != step.members {
			t.Errorf("%v: %+v", step.args, changed)
		}
	}
	s.ok("groups", "join", "Family", bob)
	var all []agentapi.Group
	s.json(&all, "groups", "list")
	if len(all) != 1 || all[0].Members[0].Email != bob || all[0].Members[0].Status != agentapi.PersonPending || all[0].Until["Our Photos"].Format(time.RFC3339) != until {
		t.Errorf("listed %+v", all)
	}
	shown := s.ok("groups")
	for _, word := range []string{"Family", bob + " (invited)", "Our Photos until"} {
		if !strings.Contains(shown, word) {
			t.Errorf("shown as %s without %q", shown, word)
		}
	}
	if happened := s.ok("activity"); !strings.Contains(happened, "joined Family, by you") || !strings.Contains(happened, "was given to Family by you, until") {
		t.Errorf("activity: %s", happened)
	}
	s.ok("groups", "remove", "FAMILY")
	if s.json(&all, "groups"); len(all) != 0 {
		t.Errorf("listed %+v", all)
	}
	s.wants(commandline.ExitRefused, "no group called", "groups", "join", "Family", bob)
	s.wants(commandline.ExitUsage, "--app", "groups", "grant", "Family")
}

package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"porchlight/test/programs"
)

// What visitors asked is listed for people and for programs, and with the setting off
// there is none.
func TestRequestsOfVisitors(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("notes", "Notes", http.HandlerFunc(greets))
	s.wants(0, "Nobody has asked", "requests")
	s.browse(strings.TrimSpace(s.ok("open", "notes", "--print")))
	var lines []map[string]any
	s.json(&lines, "requests", "notes")
	if len(lines) != 1 || lines[0]["app"] != "notes" || lines[0]["method"] != "GET" || lines[0]["path"] != "/" || lines[0]["status"] != 200.0 || lines[0]["error"] != "" || lines[0]["email"] == "" || lines[0]["at"] == "" || lines[0]["ms"] == nil {
		t.Errorf("%v", lines)
	}
	if out := s.ok("requests"); !strings.Contains(out, " GET /  ") || !strings.Contains(out, "notes") {
		t.Error(out)
	}
	p := inProcess(t, s.dir, "requests", "--follow", "--json").onPipes()
	p.says(`"path":"/"`)
	s.browse(strings.TrimSpace(s.ok("open", "notes", "--print")))
	programs.Eventually(t, "the next is followed", func() bool { return strings.Count(p.output(), "\n") == 2 })
	p.stops(syscall.SIGINT)
	s.ok("settings", "--requests=false")
	s.wants(1, "porchlight settings --requests", "requests")
	s.ok("settings", "--requests")
	if s.json(&lines, "requests"); len(lines) != 0 {
		t.Errorf("kept while it was off: %v", lines)
	}
	s.wants(1, "no app", "requests", "nothing")
}

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
	if out := s.ok("requests"); !strings.Contains(out, "Nobody has asked") {
		t.Error(out)
	}
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
	if code, _, said := s.run("requests"); code != 1 || !strings.Contains(said, "porchlight settings --requests") {
		t.Errorf("off: %d %s", code, said)
	}
	s.ok("settings", "--requests")
	if s.json(&lines, "requests"); len(lines) != 0 {
		t.Errorf("kept while it was off: %v", lines)
	}
	if code, _, said := s.run("requests", "nothing"); code != 1 || !strings.Contains(said, "no app") {
		t.Errorf("of no app: %d %s", code, said)
	}
}

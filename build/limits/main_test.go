package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// docs/measured/limits.md says what the code does. Of its tests it says two at most, and those are
// looked for: a test that comes is no reason to write the page anew.
func TestThePageSaysWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	want, err := write(root)
	programs.Must(t, err)
	had, err := os.ReadFile(filepath.Join(root, "docs", "measured", "limits.md"))
	programs.Must(t, err)
	if !strings.Contains(want, "| `Idle` | 2 min | how long a connection may wait for its next request | ") {
		t.Errorf("a limit that everybody knows is missing:\n%s", want)
	}
	tests := regexp.MustCompile(`(?m)\|[^|]*\|$`)
	if tests.ReplaceAllString(want, "") != tests.ReplaceAllString(string(had), "") {
		t.Error("docs/measured/limits.md is of another day: go generate ./build/limits")
	}
	in := &source{root: root}
	programs.Must(t, in.readTests())
	known := map[string]bool{}
	for _, names := range in.tests {
		for _, name := range names {
			known[name] = true
		}
	}
	for _, name := range regexp.MustCompile(`\bTest\w+`).FindAllString(string(had), -1) {
		if !known[name] {
			t.Errorf("there is no %s: go generate ./build/limits", name)
		}
	}
}

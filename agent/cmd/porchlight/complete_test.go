package main

import (
	"net/http"
	"strings"
	"testing"
)

// completed is what the shell is offered for the last word.
func (s shell) completed(words ...string) string {
	s.t.Helper()
	var o output
	if code := run(s.t.Context(), append([]string{"__complete", "--data", s.dir}, words...), o.terminal()); code != 0 {
		s.t.Fatalf("completing %q: exit %d, %s", words, code, o.stderr())
	}
	return o.stdout()
}

// Weakness: the shell completed names of files where apps and people are meant.
func TestTheShellCompletesWhatThereIs(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("notes", "Notes", http.NotFoundHandler())
	s.ok("people", "invite", bob, "--app", "Notes")
	for words, want := range map[string]string{
		"approve ":                         "notes\tNotes\n",
		"options ":                         "notes\tNotes\n",
		"people remove ":                   bob + "\tpending\n",
		"people withdraw bob@x.org --app ": "Notes\n",
		"grants revoke ":                   "",
		"requests ":                        "notes\tNotes\n",
		"unshare ":                         "notes\tNotes\n",
		"share --name ":                    "notes\tNotes\n",
		"run ":                             "notes\tNotes\n",
		"settings --quiet app":             "approved\tan app was approved at a terminal\n",
		"users allow ":                     "",
		"approve notes ":                   "",
		"status ":                          "",
	} {
		out := s.completed(strings.Split(words, " ")...)
		if !strings.Contains(out, want) || !strings.HasSuffix(out, ":4\n") { // 4: and no files
			t.Errorf("%q is completed by %q", words, out)
		}
	}
	if out := s.completed("approve", "notes", ""); strings.Contains(out, "Notes") {
		t.Errorf("a second app is offered: %q", out)
	}
	if out := s.completed("run", "shop", "--", ""); !strings.HasSuffix(out, ":0\n") {
		t.Errorf("run takes a program: %q", out)
	}
	if out := s.completed("export", ""); !strings.HasSuffix(out, ":0\n") {
		t.Errorf("export takes a file: %q", out)
	}
}

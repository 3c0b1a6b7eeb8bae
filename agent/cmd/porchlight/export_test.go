package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/export"
	"porchlight/agent/ownersecret"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// TestExport: the same document on the standard output and in a file, with what
// the owner has, and without what would let anybody in.
func TestExport(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("notes", "Notes", http.NotFoundHandler())
	s.ok("people", "invite", "bob@example.com", "--app", "Notes")
	file := filepath.Join(t.TempDir(), "mine.json")
	s.wants(0, "Saved as "+file, "export", file)
	saved := programs.Got(os.ReadFile(file))(t)
	var printed, kept export.Document
	programs.Must(t, json.Unmarshal([]byte(s.ok("export")), &printed), json.Unmarshal(saved, &kept))
	for _, d := range []export.Document{printed, kept} {
		if d.Format != export.Format || d.Account.Host == "" || len(d.Apps) != 1 || d.Apps[0].Label != "Notes" || len(d.People) < 2 {
			t.Errorf("exported %+v", d)
		}
	}
	var answer struct {
		OK   bool
		File string
	}
	if s.json(&answer, "export", file); !answer.OK || answer.File != file {
		t.Errorf("export --json answered %+v", answer)
	}
	secret := programs.Got(ownersecret.File(s.dir).Get(t.Context()))(t)
	// The invitation's mail is in the outbox, with the link in it.
	for what, word := range map[string]string{"the owner secret": secret, "a link that lets in": "token"} {
		if strings.Contains(string(saved), word) {
			t.Errorf("%s is in the export", what)
		}
	}
	for _, step := range []struct {
		in   shell
		args []string
		code int
		want string
	}{
		{s, []string{"export", filepath.Join(s.dir, "none", "x.json")}, commandline.ExitRefused, "Choose another place"},
		{s, []string{"export", "a", "b"}, commandline.ExitUsage, `"b"`},
		{shell{t, t.TempDir()}, []string{"export"}, commandline.ExitNotRunning, "not running"},
	} {
		step.in.wants(step.code, step.want, step.args...)
	}
}

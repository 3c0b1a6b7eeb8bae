package main

import (
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// TestPauseAndDark: pause, dark, options, settings and activity, as a person types them
// and as a program reads them, with a real visit in between.
func TestPauseAndDark(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("notes", "Notes", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "open") }))
	browser := trusting(t, s.dir)
	if page, err := browser.Open(t.Context(), strings.TrimSpace(s.ok("open", "notes", "--print"))); err != nil || page.Body != "open" {
		t.Fatalf("%+v, %v", page, err)
	}
	address := strings.Fields(s.ok("status"))
	visit := func() *visitor.Page {
		t.Helper()
		return programs.Got(browser.Open(t.Context(), address[len(address)-2]))(t)
	}
	for _, step := range []struct {
		args   []string
		says   string
		status int
		page   string
	}{
		{[]string{"pause", "notes"}, "notes is paused", 503, "Notes is paused"},
		{[]string{"apps"}, "paused", 503, ""},
		{[]string{"resume", "notes"}, "open again", 200, "open"},
		{[]string{"dark"}, "Everything is closed", 503, "The owner of this computer has closed everything"},
		{[]string{"apps"}, "Everything is closed since", 503, ""},
		{[]string{"status"}, "Everything is closed since", 503, ""},
		{[]string{"dark", "off"}, "Open again", 200, "open"},
		{[]string{"dark", "on"}, "Everything is closed", 503, "The owner of this computer has closed everything"},
		{[]string{"dark", "off"}, "Open again", 200, "open"},
		{[]string{"options", "notes", "--forwarded", "--identity-header", "X-Remote-User", "--identity-value", "id"}, "X-Remote-User, with the account id", 200, ""},
		{[]string{"options", "notes", "--identity-header", ""}, "identity-header     none", 200, ""},
		{[]string{"options", "notes"}, "forwarded           on", 200, ""},
		{[]string{"options", "notes", "--first-byte", "300", "--public-address"}, "first-byte          300 s", 200, ""},
		{[]string{"options", "notes", "--first-byte", "0", "--public-address=false"}, "first-byte          60 s", 200, ""},
		{[]string{"settings"}, "for 24 hours", 200, ""},
		{[]string{"settings", "--fail-static-hours", "4", "--ask-again", "--quiet", "changed,access"}, "access, changed", 200, ""},
		{[]string{"settings", "--notify", "waiting"}, "Notifications: waiting.", 200, ""},
		{[]string{"settings", "--quiet", ""}, "notification: none", 200, ""},
		{[]string{"settings", "--trust-everybody"}, "trusted: on", 200, ""},
		{[]string{"settings", "--trust-everybody=false"}, "trusted: off", 200, ""},
		{[]string{"activity"}, "Notes  opened", 200, ""},
		{[]string{"activity"}, "everything was closed by you", 200, ""},
		{[]string{"activity", "--only", "decisions", "--app", "Notes"}, "was approved by you", 200, ""},
		{[]string{"activity", "--only", "visits", "--search", "nobody"}, "Nothing like that has happened", 200, ""},
		{[]string{"pause", "notes"}, "notes is paused", 503, "Notes is paused"},
		{[]string{"activity", "undo"}, "Undone: Notes was paused by you", 200, ""},
		{[]string{"activity", "clear"}, "Forgotten", 200, ""},
		{[]string{"activity"}, "Nothing has happened", 200, ""},
	} {
		s.wants(0, step.says, step.args...)
		if page := visit(); page.Status != step.status || !strings.Contains(page.Body, step.page) {
			t.Errorf("after %v: HTTP %d %.200s", step.args, page.Status, page.Body)
		}
	}

	// status says it to the owner, also where the agent is named by its address, as
	// PORCHLIGHT_API does; of another agent this owner knows nothing.
	s.ok("dark")
	running := programs.Got(agentapi.ReadRunning(s.dir))(t)
	for _, named := range [][]string{{"status"}, {"status", "--api", running.API}} {
		s.wants(0, "Everything is closed since", named...)
	}
	other := startAgent(t)
	if out := other.ok("status", "--api", running.API); strings.Contains(out, "Everything is closed since") {
		t.Errorf("told to the owner of another agent: %q", out)
	}
	s.ok("dark", "off")

	for _, args := range [][]string{{"pause", "notes"}, {"resume", "notes"}, {"dark"}, {"dark", "on"}, {"dark", "off"}, {"activity", "clear"}} {
		var done agentapi.Done
		if s.json(&done, args...); !done.OK {
			t.Errorf("porchlight %s --json: %+v", strings.Join(args, " "), done)
		}
	}
	var options agentapi.AppOptions
	s.json(&options, "options", "notes", "--h2c")
	if want := (agentapi.AppOptions{Forwarded: true, H2C: true}); options != want {
		t.Errorf("%+v, want %+v", options, want)
	}
	var settings agentapi.Settings
	s.json(&settings, "settings")
	if settings.FailStaticHours != 4 || !settings.AskAgain || len(settings.Quiet) != 0 {
		t.Errorf("%+v", settings)
	}
	var lines []map[string]any
	s.json(&lines, "activity", "--limit", "5")
	if lines == nil {
		t.Error("no activity is null and not an empty list")
	}

	for _, tt := range []struct {
		args []string
		code int
	}{
		{[]string{"pause"}, commandline.ExitUsage},
		{[]string{"pause", "nothing"}, commandline.ExitRefused},
		{[]string{"dark", "of"}, commandline.ExitUsage},
		{[]string{"dark", "on", "off"}, commandline.ExitUsage},
		{[]string{"options", "nothing"}, commandline.ExitRefused},
		{[]string{"options", "notes", "--first-byte", "3601"}, commandline.ExitRefused},
		{[]string{"options", "notes", "--first-byte", "soon"}, commandline.ExitUsage},
		{[]string{"options", "notes", "--identity-header", "Cookie"}, commandline.ExitRefused},
		{[]string{"options", "notes", "--identity-header", "X-User", "--identity-value", "name"}, commandline.ExitRefused},
		{[]string{"options", "notes", "--h3"}, commandline.ExitUsage},
		{[]string{"settings", "--fail-static-hours", "30"}, commandline.ExitRefused},
		{[]string{"settings", "--fail-static-hours", "x"}, commandline.ExitUsage},
		{[]string{"users", "ask"}, commandline.ExitUsage},
		{[]string{"users", "allow"}, commandline.ExitUsage},
		{[]string{"users", "allow", "root"}, commandline.ExitRefused},
		{[]string{"users", "allow", "no-such-user"}, commandline.ExitRefused},
		{[]string{"users", "forget", "nobody"}, commandline.ExitRefused},
		{[]string{"notices", "undo", "x"}, commandline.ExitUsage},
		{[]string{"notices", "undo", "7"}, commandline.ExitRefused},
		{[]string{"activity", "--limit", "0"}, commandline.ExitRefused},
		{[]string{"activity", "all"}, commandline.ExitUsage},
	} {
		s.wants(tt.code, "", tt.args...)
	}
}

// trusting is a browser that trusts the data directory's authority.
func trusting(t *testing.T, dir string) *visitor.Visitor {
	t.Helper()
	files := programs.Got(filepath.Glob(filepath.Join(dir, "ca", "*.pem")))(t)
	roots := x509.NewCertPool()
	for _, f := range files {
		raw := programs.Got(os.ReadFile(f))(t)
		roots.AppendCertsFromPEM(raw)
	}
	v := visitor.New(roots)
	t.Cleanup(v.Close)
	return v
}

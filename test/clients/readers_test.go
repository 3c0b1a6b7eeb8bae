//go:build clients

package clients

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// TestReaders runs the documentation's remote clients: once with the owner
// asked, then twice with what was kept, and after a revocation with the owner
// asked again.
func TestReaders(t *testing.T) {
	h := newHouse(t)
	h.signIn(t)
	goReader := filepath.Join(t.TempDir(), "reader")
	build := exec.Command("go", "build", "-o", goReader, "./reader")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	here := programs.Got(filepath.Abs("."))(t)
	node := filepath.Join(here, "node")
	for name, command := range map[string][]string{
		"Go":         {goReader, "notes"},
		"JavaScript": {"node", "--import", filepath.Join(node, "localhost.mjs"), filepath.Join(node, "reader.mjs"), "notes"},
		"Python":     {"/usr/bin/python3", filepath.Join(here, "python", "reader.py"), "notes"},
		"curl":       {"bash", filepath.Join(here, "curl", "reader.sh"), "notes"},
	} {
		t.Run(name, func(t *testing.T) {
			redirect := freeRedirect(t)
			if name == "curl" { // nothing of its own listens there
				redirect = h.back
			}
			client := h.issue(t, "Reader in "+name, redirect)
			r := reader{house: h, t: t, command: command, client: client, dir: t.TempDir()}
			r.wants(1)
			r.wants(0)
			r.wants(0)
			if kept, err := os.Stat(filepath.Join(r.dir, "reader.token")); err != nil || kept.Mode().Perm() != 0o600 {
				t.Errorf("the refresh token is kept with %v, %v", kept.Mode(), err)
			}
			h.revokeAll(t)
			r.wants(1)
		})
	}
}

// freeRedirect is a redirect URI on a port that is free now.
func freeRedirect(t testing.TB) string {
	return "http://" + programs.FreeAddress(t) + "/callback"
}

// reader is one of the documentation's programs.
type reader struct {
	house   *house
	t       testing.TB
	command []string
	client  registered
	dir     string
}

// wants runs the program, allows what it asks for, and wants the app's answer
// and so many questions.
func (r reader) wants(questions int) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), r.command[0], r.command[1:]...)
	cmd.Dir = r.dir
	cmd.Env = append(r.house.programEnv(), "AUTH_URL="+r.client.AuthURL, "CLIENT_ID="+r.client.ClientID,
		"CLIENT_SECRET="+r.client.ClientSecret, "REDIRECT_URI="+r.client.RedirectURI)
	cmd.Stderr = r.t.Output()
	out := programs.Got(cmd.StdoutPipe())(r.t)
	paste, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	programs.Must(r.t, err)
	asked, printed := 0, ""
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "Open "); ok {
			asked++
			granted := r.house.allow(r.t, address, "Reader")
			if !strings.HasPrefix(granted, r.client.RedirectURI) {
				r.t.Errorf("the browser ended at %s", granted)
			}
			io.WriteString(paste, granted+"\n") // for a program that asks for it
			continue
		}
		printed += lines.Text() + "\n"
	}
	if err := cmd.Wait(); err != nil {
		r.t.Fatalf("%v, having printed %q", err, printed)
	}
	if want := r.house.answer(); asked != questions || !strings.Contains(printed, "200") || !strings.Contains(printed, want) {
		r.t.Fatalf("asked %d times, want %d; printed %q, want %q", asked, questions, printed, want)
	}
}

// TestJavaPublishes: the HTTP client that Java brings along, which offers HTTP/2 by
// an Upgrade nobody asked it for, reads the status and asks for an address.
func TestJavaPublishes(t *testing.T) {
	t.Parallel()
	h := emptyHouse(t)
	cmd := exec.CommandContext(t.Context(), "java", "java/Publish.java", "notes", "Notes", strconv.Itoa(portOf(startApp(t))))
	cmd.Env, cmd.Stderr = append(h.env, "PORCHLIGHT_API="+h.agent.Running.API), t.Output()
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 2 || !strings.HasPrefix(lines[0], `200 {"connected":true`) || lines[1] != `202 {"status":"pending"}` {
		t.Fatalf("%v, %q", err, out)
	}
	h.porchlight(t, "approve", "notes")
}

package main

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// A server without its database lives and is not ready; once the database is
// back, so is the server.
func TestReadyWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	db := ownDatabase(t)
	s := start(t, "--postgres", db.Database(t), "--data", t.TempDir())
	ready := func() (int, string) { return fetch(t, probe(t), s.metrics+"/readyz") }
	if status, text := ready(); status != http.StatusOK {
		t.Fatalf("at first: %d %s", status, text)
	}
	if err := db.Kill(); err != nil {
		t.Fatal(err)
	}
	if status, text := ready(); status != http.StatusServiceUnavailable || !strings.Contains(text, "store does not answer") {
		t.Errorf("without the database: %d %s", status, text)
	}
	if status, _ := fetch(t, probe(t), s.metrics+"/healthz"); status != http.StatusOK {
		t.Errorf("it does not say that it lives: %d", status)
	}
	if err := db.StartAgain(); err != nil {
		t.Fatal(err)
	}
	programs.Eventually(t, "ready again", func() bool { status, _ := ready(); return status == http.StatusOK })
	s.stop()
}

// A server that is started while its database is away says so in its log, and
// serves once the database is back; told to end meanwhile, it ends.
func TestStartedBeforeTheDatabase(t *testing.T) {
	t.Parallel()
	db := ownDatabase(t)
	url := db.Database(t)
	if err := db.Kill(); err != nil {
		t.Fatal(err)
	}
	begin := func() *programs.Process {
		cmd := exec.Command(program, "serve", "--data", t.TempDir(), "--domain", "porch.test", "--listen", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), envPrefix+"POSTGRES="+url)
		p := programs.Begin(t, cmd)
		if _, err := p.Logs(t.Context(), "waiting for it"); err != nil {
			t.Fatal(err)
		}
		return p
	}
	patient, hasty := begin(), begin()
	if code := hasty.Stop(); code == 0 {
		t.Error("it ended as if it had served")
	}
	if err := db.StartAgain(); err != nil {
		t.Fatal(err)
	}
	if _, err := patient.Says(t.Context(), `^Porchlight control plane at \S+, listening on \S+\n`); err != nil {
		t.Error(err)
	}
	if code := patient.Stop(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

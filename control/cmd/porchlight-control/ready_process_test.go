package main

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
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
	eventually(t, "ready again", func() bool { status, _ := ready(); return status == http.StatusOK })
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
	begin := func() (cmd *exec.Cmd, out *bufio.Scanner) {
		cmd = exec.Command(program, "serve", "--data", t.TempDir(), "--domain", "porch.test", "--listen", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), envPrefix+"POSTGRES="+url)
		stdout, err1 := cmd.StdoutPipe()
		stderr, err2 := cmd.StderrPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // has ended, unless the test failed
		log := bufio.NewScanner(stderr)
		for log.Scan() {
			if strings.Contains(log.Text(), "waiting for it") {
				go func() {
					for log.Scan() {
					}
				}()
				return cmd, bufio.NewScanner(stdout)
			}
		}
		t.Fatal("it ended without waiting")
		return nil, nil
	}
	patient, out := begin()
	hasty, _ := begin()
	if err := hasty.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := hasty.Wait(); err == nil {
		t.Error("it ended as if it had served")
	}
	if err := db.StartAgain(); err != nil {
		t.Fatal(err)
	}
	if !out.Scan() || !listening.MatchString(out.Text()) {
		t.Errorf("it printed %q", out.Text())
	}
	if err := patient.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := patient.Wait(); err != nil {
		t.Error(err)
	}
}

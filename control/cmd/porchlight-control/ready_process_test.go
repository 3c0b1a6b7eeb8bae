package main

import (
	"net/http"
	"strings"
	"testing"

	"porchlight/control/kv/pgtest"
)

// A server without its database lives and is not ready; once the database is
// back, so is the server.
func TestReadyWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	db, err := pgtest.Start(pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
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

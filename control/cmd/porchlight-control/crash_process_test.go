package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"porchlight/control"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// crashChains are the grants refreshed at a time.
const crashChains = 8

// crashLoop kills what the refreshes need, again and again, at a moment nobody
// chose. begin returns a running server, before again if that still runs, and
// further grants; kill ends something.
func crashLoop(t *testing.T, c remote, begin func(before *server, grants int) (*server, []*chain), kill func(round int, s *server)) {
	var s *server
	var chains []*chain
	var acks atomic.Int64
	all, lost := 0, 0
	next := func() {
		var fresh []*chain
		s, fresh = begin(s, crashChains-len(chains))
		chains = append(chains, fresh...)
		lost += goOn(t, c, chains, s.browser(), s.AuthURL)
		// A client whose answer was lost on the way begins again.
		chains = slices.DeleteFunc(chains, func(k *chain) bool { return k.lost })
	}
	for round := range rounds(20) {
		next()
		if len(chains) == 0 {
			next()
		}
		browser, authURL := s.browser(), s.AuthURL
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		acks.Store(0)
		go func() {
			done <- hammer(ctx, c, chains, func(int) (*http.Client, string) { return browser, authURL }, &acks)
		}()
		at := 10 + rand.Int64N(150)
		programs.Eventually(t, "refreshes are acknowledged", func() bool { return acks.Load() >= at || len(done) > 0 })
		kill(round, s)
		stop()
		if err := <-done; err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		all += int(acks.Load())
	}
	next()
	if all == 0 {
		t.Fatal("nothing was refreshed")
	}
	t.Logf("%d rotations were acknowledged; of %d more the answer was lost with the server", all, lost)
}

// kill -9 of the server during refreshes, on bolt: no acknowledged rotation is
// lost, and no used token works again.
func TestRefreshesSurviveKillsOnBolt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var c remote
	inDirectory(t, dir, func(svc *control.Service) { c = register(t, svc) })
	crashLoop(t, c, func(before *server, grants int) (s *server, fresh []*chain) {
		if before != nil {
			before.Kill() // it has ended, but where all grants were lost
		}
		inDirectory(t, dir, func(svc *control.Service) { fresh = c.grant(t, svc, grants) })
		s = start(t, dir, "--log-level", "warn")
		return s, fresh
	}, func(_ int, s *server) {
		s.Kill()
	})
}

// The same on PostgreSQL, where every other time it is a process of the database
// that is killed, which has the database throw out everybody and recover; the
// server then goes on by itself.
func TestRefreshesSurviveKillsOnPostgres(t *testing.T) {
	t.Parallel()
	url := ownDatabase(t).Database(t)
	var c remote
	inDatabase(t, url, func(svc *control.Service) { c = register(t, svc) })
	dir := t.TempDir()
	crashLoop(t, c, func(before *server, grants int) (s *server, fresh []*chain) {
		inDatabase(t, url, func(svc *control.Service) { fresh = c.grant(t, svc, grants) })
		if before != nil {
			select {
			case <-before.Done():
			default:
				return before, fresh // it was the database's turn
			}
		}
		s = start(t, dir, "--postgres", url, "--log-level", "warn")
		return s, fresh
	}, func(round int, s *server) {
		if round%2 == 1 {
			killBackend(t, url)
			return
		}
		s.Kill()
	})
}

// ownDatabase is a PostgreSQL server that may be killed.
func ownDatabase(t *testing.T) *pgtest.Server {
	t.Helper()
	database := programs.Got(pgtest.Start(pgtest.Options{}))(t)
	t.Cleanup(func() {
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	return database
}

// killBackend kills one of the database's processes that serve the server.
func killBackend(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	programs.Must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	var pid int
	err = conn.QueryRow(t.Context(), `select pid from pg_stat_activity
		where application_name = 'porchlight' and datname = current_database() order by random() limit 1`).Scan(&pid)
	programs.Must(t, err)
	backend, err := os.FindProcess(pid)
	if err == nil {
		err = backend.Kill()
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// PostgreSQL away for longer than a request waits: requests are answered with a
// sentence and 503, readiness turns, nothing is half-written, and the server goes
// on by itself.
func TestPostgresAwayUnderLoad(t *testing.T) {
	t.Parallel()
	database := ownDatabase(t)
	url := database.Database(t)
	var c remote
	var chains []*chain
	inDatabase(t, url, func(svc *control.Service) { c = register(t, svc); chains = c.grant(t, svc, 8) })
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir, "--postgres", url+"&pool_max_conns=16")
	browser := s.browser()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	var acks atomic.Int64
	go func() {
		done <- hammer(ctx, c, chains, func(int) (*http.Client, string) { return browser, s.AuthURL }, &acks)
	}()
	programs.Eventually(t, "refreshes", func() bool { return acks.Load() > 100 || len(done) > 0 })

	t.Log("restarted at once, as by pg_ctl restart -m immediate: requests wait")
	for range 3 {
		programs.Must(t, database.Kill())
		programs.Must(t, database.StartAgain())
		before := acks.Load()
		programs.Eventually(t, "refreshes after a restart", func() bool { return acks.Load() > before+50 || len(done) > 0 })
	}

	t.Log("away for longer: a sentence for machines and for people")
	programs.Must(t, database.Kill())
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		a, err := c.refresh(limited, browser, s.AuthURL, "a.b")
		if err != nil || a.status != http.StatusServiceUnavailable || a.Code != "temporarily_unavailable" || a.Why == "" {
			t.Errorf("the token endpoint: %+v, %v", a, err)
		}
	})
	status, page := fetch(t, browser, s.AuthURL+"/signin/link?token="+strings.Repeat("x", 43))
	if status != http.StatusServiceUnavailable || !strings.Contains(page, "Try again in a moment") {
		t.Errorf("a page: %d\n%s", status, page)
	}
	waiting.Wait()
	if status, text := fetch(t, probe(t), s.Metrics+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(text, "store does not answer") {
		t.Errorf("readiness: %d %s", status, text)
	}
	for _, path := range []string{"/healthz", "/livez"} {
		if status, _ := fetch(t, probe(t), s.Metrics+path); status != http.StatusOK {
			t.Errorf("%s: it does not say that it lives: %d", path, status)
		}
	}
	if _, body := fetch(t, probe(t), s.Metrics+"/metrics"); !strings.Contains(body, `porchlight_postgres_connections{state="max"} 16`) {
		t.Errorf("no numbers of the database:\n%s", body)
	}
	programs.Must(t, database.StartAgain())
	before := acks.Load()
	programs.Eventually(t, "refreshes when it is back", func() bool { return acks.Load() > before+50 || len(done) > 0 })
	stop()
	programs.Must(t, <-done)
	goOn(t, c, chains, browser, s.AuthURL)
	programs.Eventually(t, "readiness", func() bool { status, _ := fetch(t, probe(t), s.Metrics+"/readyz"); return status == http.StatusOK })
	s.stop()
}

// A server that is started while its database is away says so in its log, and
// serves once the database is back; told to end meanwhile, it ends.
func TestStartedBeforeTheDatabase(t *testing.T) {
	t.Parallel()
	db := ownDatabase(t)
	url := db.Database(t)
	programs.Must(t, db.Kill())
	begin := func() *programs.Process {
		cmd := exec.Command(program, "serve", "--data", t.TempDir(), "--domain", "porch.test", "--listen", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), envPrefix+"POSTGRES="+url)
		p := programs.Begin(t, cmd)
		programs.Got(p.Logs(t.Context(), "waiting for it"))(t)
		return p
	}
	patient, hasty := begin(), begin()
	if code := hasty.Stop(); code == 0 {
		t.Error("it ended as if it had served")
	}
	programs.Must(t, db.StartAgain())
	if _, err := patient.Says(t.Context(), `^Porchlight control plane at \S+, listening on \S+\n`); err != nil {
		t.Error(err)
	}
	if code := patient.Stop(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

package kv

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"porchlight/control/kv/pgtest"
)

// A process that is started while its database is down, as after a crash of the
// machine, is told so and gets going once the database is back.
func TestPostgresOpenWaits(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	db := server.Database(t)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 100)
	opened := make(chan error, 1)
	go func() {
		s, err := OpenPostgres(t.Context(), db, PostgresOptions{
			Wait:    time.Minute,
			Waiting: func(cause error, _ time.Duration) { waits <- cause },
		})
		if err == nil {
			err = errors.Join(s.Update(t.Context(), func(tx Tx) error { return tx.Put("k", nil, 0) }), s.Close())
		}
		opened <- err
	}()
	for range 2 {
		select {
		case cause := <-waits:
			if cause == nil {
				t.Error("waited for no reason")
			}
		case err := <-opened:
			t.Fatalf("did not wait: %v", err)
		}
	}
	if err := server.StartAgain(); err != nil {
		t.Fatal(err)
	}
	if err := await(t, opened); err != nil {
		t.Fatal(err)
	}
}

// What waiting cannot mend ends at once, and so does waiting when it is told to.
func TestPostgresOpenWaitsForNothingElse(t *testing.T) {
	t.Parallel()
	options := PostgresOptions{Wait: time.Hour, Waiting: func(cause error, _ time.Duration) { t.Errorf("waits because of %v", cause) }}
	_, err := OpenPostgres(t.Context(), strings.Replace(pgtest.Database(t), "postgres:///test", "postgres:///none", 1), options)
	if pe, ok := errors.AsType[*pgconn.PgError](err); !ok || pe.Code != "3D000" {
		t.Errorf("a database that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	options.Waiting = func(error, time.Duration) { cancel() }
	if _, err := OpenPostgres(ctx, "postgres://me@127.0.0.1:1/x", options); err == nil {
		t.Error("opened nothing")
	}
}

func TestPostgresAddressErrors(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://me:hunter2@%zz/x", "postgres://me:hunter2@127.0.0.1:1/x", "host=127.0.0.1 port=no password=hunter2", "hunter2",
		"postgres://me:hunter2@127.0.0.1:1/x?pool_max_conns=none",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_, err := OpenPostgres(ctx, address, PostgresOptions{})
		cancel()
		if err == nil {
			t.Errorf("%s was taken", address)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is in %q", err)
		}
	}
}

// Processes that start on an empty database at the same time all get going.
func TestPostgresOpenTogether(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := OpenPostgres(context.Background(), db, PostgresOptions{MaxConns: 2})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

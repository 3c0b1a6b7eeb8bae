package kv

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// A process that is started while its database is down, as after a crash of the
// machine, is told so and gets going once the database is back.
func TestPostgresOpenWaits(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	db := server.Database(t)
	programs.Must(t, server.Kill())
	waits := make(chan error, 100)
	opened := make(chan error, 1)
	go func() {
		s, err := Open(t.Context(), db, Options{
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
	programs.Must(t, server.StartAgain())
	programs.Must(t, await(t, opened))
}

// What waiting cannot mend ends at once, and so does waiting when it is told to.
func TestPostgresOpenWaitsForNothingElse(t *testing.T) {
	t.Parallel()
	options := Options{Wait: time.Hour, Waiting: func(cause error, _ time.Duration) { t.Errorf("waits because of %v", cause) }}
	_, err := Open(t.Context(), strings.Replace(pgtest.Database(t), "postgres:///test", "postgres:///none", 1), options)
	if pe, ok := errors.AsType[*pgconn.PgError](err); !ok || pe.Code != "3D000" {
		t.Errorf("a database that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	options.Waiting = func(error, time.Duration) { cancel() }
	if _, err := Open(ctx, "postgres://me@127.0.0.1:1/x", options); err == nil {
		t.Error("opened nothing")
	}
}

// What the operator reads is one line that says what to check.
func TestPostgresOpenFailuresAreSentences(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	deaf := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { deaf.Close() })
	refusing := refusingServer(t, &pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "password authentication failed"})
	for what, tt := range map[string]struct{ url, want string }{
		"no such database": {strings.Replace(db, "postgres:///test", "postgres:///none", 1), "has no database"},
		"no such user":     {db + "&user=nobody-known&password=hunter2", `does not let user "nobody-known" in`},
		"wrong password":   {"postgres://me:hunter2@" + refusing + "/x?sslmode=disable", `refuses the password of user "me"`},
		"nothing listens":  {"postgres://me:hunter2@127.0.0.1:1/x", "no server listens at 127.0.0.1:1"},
		"no socket":        {"postgres:///x?user=me&password=hunter2&host=" + url.PathEscape(t.TempDir()), "no server listens at /"},
		"silent":           {"postgres://me:hunter2@" + deaf.Addr().String() + "/x?connect_timeout=1", "does not answer"},
		"no URL":           {"postgres://me:hunter2@%zz/x", ""},
		"no port":          {"postgres:host=127.0.0.1 port=no password=hunter2", ""},
		"no setting":       {"postgres:hunter2", ""},
		"no such setting":  {"postgres://me:hunter2@127.0.0.1:1/x?pool_max_conns=none", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := Open(ctx, tt.url, Options{})
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if text := err.Error(); !strings.Contains(text, tt.want) || strings.ContainsAny(text, "\n\t") || strings.Contains(text, "hunter2") {
				t.Errorf("%q", text)
			}
		})
	}
}

// Made here: not every machine that runs tests can ask for names.
func TestPostgresOpenOfNoSuchName(t *testing.T) {
	t.Parallel()
	cfg := programs.Got(pgx.ParseConfig("postgres://me:hunter2@no-such-host.invalid/x"))(t)
	cfg.LookupFunc = func(context.Context, string) ([]string, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "no-such-host.invalid", IsNotFound: true}
	}
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err == nil {
		conn.Close(t.Context())
		t.Fatal("connected")
	}
	if text := openFailure(cfg, err).Error(); !strings.Contains(text, "no-such-host.invalid, leads nowhere") || strings.ContainsAny(text, "\n\t") {
		t.Errorf("%q", text)
	}
}

// refusingServer answers whoever starts a session with an error.
func refusingServer(t *testing.T, answer *pgproto3.ErrorResponse) (address string) {
	t.Helper()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	programs.ServeConns(t, l, func(conn net.Conn) {
		session := pgproto3.NewBackend(conn, conn)
		if _, err := session.ReceiveStartupMessage(); err == nil {
			session.Send(answer)
			_ = session.Flush() // the other side tells what it got
		}
	})
	return l.Addr().String()
}

// Processes that start on an empty database at the same time all get going.
func TestPostgresOpenTogether(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := Open(context.Background(), db+"&pool_max_conns=2", Options{})
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

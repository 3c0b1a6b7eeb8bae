package pgtest

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server keeps what was committed over both ways of ending it, and leaves
// nothing behind.
func TestServer(t *testing.T) {
	t.Parallel()
	s, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	url := s.Database(t)
	run := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	run("create table t (n int)")
	for _, end := range []func() error{s.Kill, s.Shutdown} {
		run("insert into t values (1)")
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if _, err := pgx.Connect(ctx, url); err == nil {
			t.Error("a server that was ended takes connections")
		}
		if err := s.StartAgain(); err != nil {
			t.Fatal(err)
		}
		run("select 1/(select count(*) from t)")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("%s is left behind: %v", s.dir, err)
	}
}

package pgtest

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server keeps what was committed over both ways of ending it, and leaves
// nothing behind.
func TestServer(t *testing.T) {
	t.Parallel()
	s, err := Start(Options{})
	programs.Must(t, err)
	ctx := context.Background()
	url := s.Database(t)
	run := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(ctx, url)
		programs.Must(t, err)
		defer conn.Close(ctx)
		programs.MustDo(t)(conn.Exec(ctx, sql))
	}
	run("create table t (n int)")
	for _, end := range []func() error{s.Kill, s.Shutdown} {
		run("insert into t values (1)")
		programs.Must(t, end())
		if _, err := pgx.Connect(ctx, url); err == nil {
			t.Error("a server that was ended takes connections")
		}
		programs.Must(t, s.StartAgain())
		run("select 1/(select count(*) from t)")
	}
	programs.Must(t, s.Close())
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("%s is left behind: %v", s.dir, err)
	}
}

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
	s := programs.Got(Start(Options{}))(t)
	ctx := context.Background()
	url := s.Database(t)
	run := func(sql string) {
		t.Helper()
		conn := programs.Got(pgx.Connect(ctx, url))(t)
		defer conn.Close(ctx)
		programs.Got(conn.Exec(ctx, sql))(t)
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

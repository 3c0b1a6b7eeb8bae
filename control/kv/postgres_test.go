package kv_test

import (
	"context"
	"testing"
	"time"

	"porchlight/control/kv"
	"porchlight/control/kv/kvtest"
	"porchlight/control/kv/pgtest"
)

func openPostgres(t testing.TB, url string, opts kv.PostgresOptions) *kv.Postgres {
	t.Helper()
	s, err := kv.OpenPostgres(context.Background(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestPostgresConforms(t *testing.T) {
	kvtest.Run(t, func(t *testing.T, now func() time.Time) kv.Store {
		return openPostgres(t, pgtest.Database(t), kv.PostgresOptions{Now: now})
	})
}

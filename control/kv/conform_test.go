package kv_test

import (
	"path/filepath"
	"testing"
	"time"

	"porchlight/control/kv"
	"porchlight/control/kv/kvtest"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

func TestStoresConform(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{
		"bolt":     func(t *testing.T) string { return "file:" + filepath.Join(t.TempDir(), "store.db") },
		"memory":   func(*testing.T) string { return "memory:" },
		"postgres": func(t *testing.T) string { return pgtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kvtest.Run(t, func(t *testing.T, now func() time.Time) kv.Store {
				return programs.Got(kv.Open(t.Context(), url(t), kv.Options{Now: now}))(t)
			})
		})
	}
}

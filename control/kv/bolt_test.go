package kv_test

import (
	"path/filepath"
	"testing"
	"time"

	"porchlight/control/kv"
	"porchlight/control/kv/kvtest"
)

func TestBoltConforms(t *testing.T) {
	kvtest.Run(t, func(t *testing.T, now func() time.Time) kv.Store {
		s, err := kv.OpenBolt(filepath.Join(t.TempDir(), "store.db"), kv.BoltOptions{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

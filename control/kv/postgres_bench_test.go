package kv

import (
	"context"
	"testing"

	"porchlight/control/kv/pgtest"
)

// BenchmarkUpdatePostgres is BenchmarkUpdate on a server of its own that waits
// for the disk at every commit.
func BenchmarkUpdatePostgres(b *testing.B) {
	server, err := pgtest.Start(pgtest.Options{Durable: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Close(); err != nil {
			b.Error(err)
		}
	})
	benchmarkUpdate(b, func(b *testing.B) Store {
		s, err := Open(context.Background(), server.Database(b), Options{})
		if err != nil {
			b.Fatal(err)
		}
		return s
	})
}

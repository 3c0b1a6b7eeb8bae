package kv

import (
	"context"
	"testing"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// BenchmarkUpdatePostgres is BenchmarkUpdate on a server of its own that waits
// for the disk at every commit.
func BenchmarkUpdatePostgres(b *testing.B) {
	server, err := pgtest.Start(pgtest.Options{Durable: true})
	programs.Must(b, err)
	b.Cleanup(func() {
		if err := server.Close(); err != nil {
			b.Error(err)
		}
	})
	benchmarkUpdate(b, func(b *testing.B) Store {
		s, err := Open(context.Background(), server.Database(b), Options{})
		programs.Must(b, err)
		return s
	})
}

package kv

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// BenchmarkUpdate consumes a token and writes the next, durably: what a refresh
// at the token endpoint costs the store. 100,000 other keys are there already.
func BenchmarkUpdate(b *testing.B) {
	benchmarkUpdate(b, func(b *testing.B) Store {
		return programs.Got(Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), Options{}))(b)
	})
}

func benchmarkUpdate(b *testing.B, open func(*testing.B) Store) {
	for _, workers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			s := open(b)
			defer s.Close()
			ctx := context.Background()
			value := make([]byte, 200)
			for n := 0; n < 100_000; {
				err := s.Update(ctx, func(tx Tx) error {
					for range 10_000 {
						if err := tx.Put("grant/"+strconv.Itoa(n*7919%1_000_003), value, 0); err != nil {
							return err
						}
						n++
					}
					return nil
				})
				programs.Must(b, err)
			}
			b.ResetTimer()
			var next atomic.Int64
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						err := s.Update(ctx, func(tx Tx) error {
							token := "token/" + strconv.FormatInt(i*31337%99_991, 10)
							if _, err := tx.Get(token); err != nil && !errors.Is(err, ErrNotFound) {
								return err
							}
							if err := tx.Delete(token); err != nil {
								return err
							}
							return tx.Put("token/"+strconv.FormatInt(i*7919%99_991, 10), value, 0)
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
		})
	}
}

// BenchmarkUpdatePostgres is BenchmarkUpdate on a server of its own that waits
// for the disk at every commit.
func BenchmarkUpdatePostgres(b *testing.B) {
	server := programs.Got(pgtest.Start(pgtest.Options{Durable: true}))(b)
	b.Cleanup(func() {
		if err := server.Close(); err != nil {
			b.Error(err)
		}
	})
	benchmarkUpdate(b, func(b *testing.B) Store {
		return programs.Got(Open(context.Background(), server.Database(b), Options{}))(b)
	})
}

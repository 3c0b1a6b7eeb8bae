package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// echo is one request and its answer.
func echo(conn net.Conn, buf []byte) error {
	if _, err := conn.Write(buf); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, buf)
	return err
}

// relayBulk has the app send st.bulk bytes eight times, over so many connections; once
// through those that copy them through programs of two sides, and take long.
func relayBulk(ctx context.Context, st *stage, c contender, n int) ([]reading, error) {
	conns, err := c.enterAll(ctx, n)
	if err != nil {
		return nil, err
	}
	defer closeAll(conns)
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	var g errgroup.Group
	share := st.bulk >> 20 / int64(n) // MiB
	if len(c.helpers) == 0 {
		share *= 8
	}
	for _, conn := range conns {
		g.Go(func() error {
			if _, err := fmt.Fprintf(conn, "b%d", share); err != nil {
				return err
			}
			buf := make([]byte, 256<<10)
			for left := share << 20; left > 0; {
				n, err := conn.Read(buf)
				if left -= int64(n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	took := time.Since(began).Seconds()
	after, err := c.cpu()
	gb := float64(share<<20*int64(n)) / 1e9
	return c.withoutCPU(reading{gbPerSecond, gb / took}, reading{cpuGB, (after - before).Seconds() / gb}), err
}

// withoutCPU leaves processor time out where there is no process.
func (c contender) withoutCPU(rate reading, cpu ...reading) []reading {
	if c.pid == 0 {
		return []reading{rate}
	}
	return append([]reading{rate}, cpu...)
}

// counted has workers do something again and again for st.span, and returns how often,
// and what of the processor once takes, under the name of cost.
func counted(ctx context.Context, st *stage, c contender, cost string, workers int, once func(context.Context, int) error) ([]reading, error) {
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	var n atomic.Int64
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() error {
			for time.Since(began) < st.span {
				if err := once(ctx, w); err != nil {
					return err
				}
				n.Add(1)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	took := time.Since(began).Seconds()
	after, err := c.cpu()
	count := float64(n.Load())
	return c.withoutCPU(reading{perSecond, count / took}, reading{cost, micro(after-before) / count}), err
}

// relayConnections has visitors come and go.
func relayConnections(ctx context.Context, st *stage, c contender) ([]reading, error) {
	first, err := c.enterAll(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer closeAll(first)
	return counted(ctx, st, c, cpuConnection, 64, func(ctx context.Context, w int) error {
		conn, err := c.enter(ctx, w)
		if err == nil {
			_ = conn.Close() // it has nothing more to say
		}
		return err
	})
}

func relayRequests(ctx context.Context, st *stage, c contender) ([]reading, error) {
	conns, err := c.enterAll(ctx, 64)
	if err != nil {
		return nil, err
	}
	defer closeAll(conns)
	return counted(ctx, st, c, cpuRequest, len(conns), func(_ context.Context, w int) error {
		var buf [100]byte
		return echo(conns[w], buf[:])
	})
}

// relayLatency times requests that are sent at a fixed rate.
func relayLatency(ctx context.Context, st *stage, c contender) ([]reading, error) {
	const connections = 8
	conns, err := c.enterAll(ctx, connections)
	if err != nil {
		return nil, err
	}
	defer closeAll(conns)
	var (
		mu   sync.Mutex
		took []time.Duration
		g    errgroup.Group
	)
	began := time.Now()
	for _, conn := range conns {
		g.Go(func() error {
			var buf [100]byte
			var mine []time.Duration
			pace := time.NewTicker(time.Second * connections / time.Duration(st.rate))
			defer pace.Stop()
			for time.Since(began) < st.span {
				<-pace.C
				sent := time.Now()
				if err := echo(conn, buf[:]); err != nil {
					return err
				}
				mine = append(mine, time.Since(sent))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return quantiles(took)
}

// idleVisits is what visitors at rest take, a thousand of them, who have asked once.
func idleVisits(ctx context.Context, st *stage, c contender) ([]reading, error) {
	warm, err := c.enterAll(ctx, 100) // the program itself gets into memory
	if err != nil {
		return nil, err
	}
	closeAll(warm)
	before, err := c.resident()
	if err != nil {
		return nil, err
	}
	conns, err := c.enterAll(ctx, 2*st.idle)
	if err != nil {
		return nil, err
	}
	defer closeAll(conns)
	for _, conn := range conns {
		if err := echo(conn, make([]byte, 100)); err != nil {
			return nil, err
		}
	}
	after, err := c.resident()
	return []reading{{memory, (after - before) / 1e6 / float64(2*st.idle) * 1000}}, err
}

package kv

import (
	"context"
	"runtime"
	"strconv"
	"time"
)

// How many connections a process has. Near the database eight for each core do the most:
// fewer have too few commits share a write to the disk, more only wait for each other.
// There are twice as many because one turn has half of them at most (gate). Farther away
// a connection spends its time on the way, so that it takes as many more as are under
// way at once: what a core can ask in a second, two round trips each. They take
// a quarter of what the server has at most, because other nodes, backups and people want
// some, too; but never less than leastConns.
const (
	connsPerCore = 16
	callsPerCore = 700 // a second; of the refreshing of tokens, the costliest
	leastConns   = 16
	mostConns    = 128
	// serverConns is what a server has that does not say.
	serverConns = 100
)

func connsFor(cores int, trip time.Duration, server int) int {
	wanted := connsPerCore*cores + int(float64(2*callsPerCore*cores)*trip.Seconds())
	return max(leastConns, min(wanted, server/4, mostConns))
}

// connsWanted is connsFor with the cores of this process, and what it measures.
func (p *pgStore) connsWanted(ctx context.Context) int {
	trip, server := time.Duration(0), serverConns
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return connsFor(runtime.GOMAXPROCS(0), trip, server)
	}
	defer conn.Release()
	var said string
	if conn.QueryRow(ctx, "show max_connections").Scan(&said) == nil {
		if n, err := strconv.Atoi(said); err == nil {
			server = n
		}
	}
	for range 5 { // the quickest of them is the way without what else went on
		began := time.Now()
		if conn.Ping(ctx) != nil {
			break
		}
		if took := time.Since(began); trip == 0 || took < trip {
			trip = took
		}
	}
	return connsFor(runtime.GOMAXPROCS(0), trip, server)
}

package kv

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Of several processes that open one store of an older version at once, one brings the
// rows up to date under a lease, which is a row, and the others wait for it. The lease
// keeps them from doing the same work in each other's way. That the rows are right does
// not hang on it: the work is one transaction, which looks at the count of migrations
// itself, so whoever lost the lease without noticing finds the work done, or does it.

// ErrMigrating is wrapped by what Options.Waiting is told while another process brings
// the rows up to date.
var ErrMigrating = errors.New("is bringing the rows up to date")

// leaseKey is the row of the lease; without it nobody has it.
const leaseKey = "schema-lease"

// leaseRow says who has the lease, and changes while they are there.
type leaseRow struct {
	Holder string `json:"holder"` // random, new for each time it is taken
	By     string `json:"by"`     // machine and process, for people
	Beat   int64  `json:"beat"`
}

// leaseTimes are how long things take around a lease.
type leaseTimes struct {
	beat  time.Duration // between two signs of life of its holder
	ends  time.Duration // without one, after which somebody else takes over
	again time.Duration // between two looks of who waits
	now   func() time.Time
}

// A holder's silence is measured by the clock of who waits, and the row runs out besides,
// by the store's: nobody waits for a holder that died long ago.
var usualLease = leaseTimes{beat: 3 * time.Second, ends: 15 * time.Second, again: 500 * time.Millisecond, now: time.Now}

// migrateAlone is migrate for a store that other processes may open at the same moment.
func migrateAlone(ctx context.Context, s Store, steps []Migration, times leaseTimes, waiting func(error, time.Duration)) error {
	own := leaseRow{Holder: rand.Text(), By: thisProcess()}
	var seen leaseRow // of another one
	var since time.Time
	for {
		if due, err := needsMigration(ctx, s, steps); err != nil || !due {
			return err
		}
		silent := seen != leaseRow{} && times.now().Sub(since) >= times.ends
		other, err := takeLease(ctx, s, own, seen, silent, times)
		if err != nil {
			return err
		}
		if other == (leaseRow{}) {
			return underLease(ctx, s, own, times, func() error { return migrate(ctx, s, steps) })
		}
		if other != seen {
			if other.Holder != seen.Holder && waiting != nil {
				waiting(fmt.Errorf("another node (%s) %w", other.By, ErrMigrating), times.again)
			}
			seen, since = other, times.now()
		}
		if err := pause(ctx, times.again); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeLease returns who has the lease, and nobody once it is own. A holder that is seen
// to be silent loses it. Who only waits changes nothing, and reads outside what a
// migration could collide with.
func takeLease(ctx context.Context, s Store, own, seen leaseRow, silent bool, times leaseTimes) (other leaseRow, err error) {
	taken := func() bool { return other != (leaseRow{}) && !(silent && other == seen) }
	err = s.View(ctx, func(tx Tx) (err error) { other, err = readLease(tx); return err })
	if err != nil || taken() {
		return other, err
	}
	err = s.Update(ctx, func(tx Tx) error {
		if other, err = readLease(tx); err != nil || taken() {
			return err
		}
		other = leaseRow{}
		return putLease(tx, own, times)
	})
	return other, err
}

// underLease does something while the lease is renewed, and gives that back. A renewal
// reads nothing: a transaction that only writes cannot make the migration, which is one
// long transaction beside it, run again. So one that lost the lease may write its row once
// more, which costs a wait.
func underLease(ctx context.Context, s Store, own leaseRow, times leaseTimes, do func() error) error {
	beating, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for pause(beating, times.beat) == nil {
			own.Beat++
			// Where this fails for long, who waits takes over.
			_ = s.Update(First(beating), func(tx Tx) error { return putLease(tx, own, times) })
		}
	})
	err := do()
	stop()
	wg.Wait()
	// Also when ctx has ended: whoever waits need not wait for it to run out.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), times.ends)
	defer cancel()
	_ = s.Update(First(ending), func(tx Tx) error { // it runs out anyhow
		if is, err := readLease(tx); err != nil || is.Holder != own.Holder {
			return err
		}
		return tx.Delete(leaseKey)
	})
	return err
}

// readLease is the row of the lease, empty where there is none.
func readLease(tx Tx) (row leaseRow, err error) {
	value, err := tx.Get(leaseKey)
	if errors.Is(err, ErrNotFound) {
		return row, nil
	}
	if err != nil {
		return row, err
	}
	return parseLease(value)
}

func parseLease(value []byte) (row leaseRow, err error) {
	if err = json.Unmarshal(value, &row); err != nil {
		err = fmt.Errorf("these rows are damaged: the row %s: %w", leaseKey, err)
	}
	return row, err
}

func putLease(tx Tx, row leaseRow, times leaseTimes) error {
	return PutJSON(tx, leaseKey, row, 2*times.ends)
}

func thisProcess() string {
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}

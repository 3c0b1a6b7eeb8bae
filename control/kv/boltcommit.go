package kv

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"

	"porchlight/internal/boltfile"
)

const (
	// queueLength bounds the updates that wait; a later one waits for a place
	// among them.
	queueLength = 1024
	// groupLength and groupBytes bound one commit, so that the first of a
	// group is not kept waiting for the last.
	groupLength = 256
	groupBytes  = 8 << 20
)

// States of a request.
const (
	waiting   int32 = iota // in the queue
	taken                  // the committer gives it its turn
	abandoned              // its caller left before that
)

// request is one update under way. Its caller and the committer take turns: the
// committer sends the transaction, the caller sends back what became of it, the
// committer sends the verdict of the commit.
type request struct {
	state   atomic.Int32
	turn    chan *boltfile.Tx
	ran     chan *boltTx // nil: nothing to merge
	verdict chan error
}

// do queues fn and sees it through.
func (b *boltStore) do(ctx context.Context, fn func(*boltTx) error) error {
	// Asked first because select would choose at random between a closed store
	// and room in its queue.
	if err := b.usable(ctx); err != nil {
		return err
	}
	r := &request{turn: make(chan *boltfile.Tx, 1), ran: make(chan *boltTx, 1), verdict: make(chan error, 1)}
	select {
	case b.queue <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stopped:
		return b.refusal()
	}

	var tx *boltfile.Tx
	select {
	case tx = <-r.turn:
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		tx = <-r.turn
	case <-b.stopped:
		if r.state.CompareAndSwap(waiting, abandoned) {
			return b.refusal()
		}
		tx = <-r.turn
	}

	fnErr := b.run(r, tx, fn)
	if err := <-r.verdict; err != nil {
		// What fn saw, and perhaps refused for, never happened.
		return err
	}
	return fnErr
}

// run gives fn its transaction and hands the turn back however fn ends: by
// returning, by a panic or by runtime.Goexit.
func (b *boltStore) run(r *request, tx *boltfile.Tx, fn func(*boltTx) error) error {
	var merge *boltTx
	defer func() { r.ran <- merge }()
	t := newBoltTx(tx, b.now())
	defer t.end()
	err := fn(t)
	if err == nil {
		merge = t
	}
	return err
}

// usable refuses what comes too late.
func (b *boltStore) usable(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.closing:
		return b.refusal()
	case <-b.stopped:
		return b.refusal()
	default:
		return nil
	}
}

// refusal is the answer of a store whose committer has stopped or is about to.
func (b *boltStore) refusal() error {
	select {
	case <-b.stopped:
		if b.failure != nil {
			return b.failure
		}
	default:
	}
	return ErrClosed
}

// commitLoop is the committer. It ends when the store is closed, or when bbolt
// panics, which it does on a damaged file: going on would damage it further.
func (b *boltStore) commitLoop() {
	defer close(b.stopped)
	// A page the disk cannot give any more is a fault in mapped memory.
	debug.SetPanicOnFault(true)
	for {
		// Closing goes first: select alone would keep serving a full queue.
		select {
		case <-b.closing:
			return
		default:
		}
		select {
		case <-b.closing:
			return
		case r := <-b.queue:
			if b.failure = b.commitGroup(r); b.failure != nil {
				return
			}
		}
	}
}

// commitGroup serves first and the requests that join it, and returns an error only when
// the store can no longer be used.
func (b *boltStore) commitGroup(first *request) (broken error) {
	var group []*request
	verdict := func(err error) {
		for _, r := range group {
			r.verdict <- err
		}
	}
	var tx *boltfile.Tx
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		broken = fmt.Errorf("kv: the store is damaged: %v", p)
		verdict(broken)
		func() {
			// Best effort: it may stumble over the same damage, and the lock
			// it would give back dies with the store anyway.
			defer func() { _ = recover() }()
			_ = tx.Rollback()
		}()
	}()

	tx, err := b.db.Begin(true)
	if err != nil {
		return fmt.Errorf("kv: begin writing: %w", err) // first still waits, and sees the committer stop
	}
	size := 0
	for r := first; r != nil; r = b.next(len(group), size) {
		if !r.state.CompareAndSwap(waiting, taken) {
			continue
		}
		group = append(group, r)
		r.turn <- tx
		t := <-r.ran
		if t == nil {
			continue
		}
		size += t.size
		if err := t.carry(); err != nil {
			_ = tx.Rollback()
			verdict(boltFailed("write", err))
			return nil
		}
	}
	if size == 0 {
		// Nothing was written: everybody read what is durable already.
		if err = tx.Rollback(); err != nil {
			err = fmt.Errorf("kv: end reading: %w", err)
		}
		verdict(err)
		return nil
	}
	if err = tx.Commit(); err != nil {
		err = boltFailed("commit", err)
	}
	verdict(err)
	return nil
}

// boltFailed is an error of bbolt, which keeps the words of the system's and not the
// error itself.
func boltFailed(what string, err error) error {
	err = fmt.Errorf("kv: %s: %w", what, err)
	if strings.Contains(err.Error(), syscall.ENOSPC.Error()) || strings.Contains(err.Error(), syscall.EFBIG.Error()) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// next is the request that may still join a group of n whose writes are size
// bytes, or nil. Callers just answered are about to come back; yielding lets
// them, and makes the difference between groups of a few and groups of all.
func (b *boltStore) next(n, size int) *request {
	if n >= groupLength || size >= groupBytes {
		return nil
	}
	for range 3 {
		select {
		case r := <-b.queue:
			return r
		default:
			runtime.Gosched()
		}
	}
	return nil
}

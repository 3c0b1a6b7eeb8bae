package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

// What is remembered for when the store is away is bounded, one entry a computer.
func TestLastKnownIsBounded(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	d := directoryOf(Config{}, "one", now.Now, nil)
	d.nodes, d.seenAt = []nodeRow{{Node: "one"}, {Node: "two"}, {Node: "three"}}, now.Now()
	held := func(host, node string) { d.heldBy(host, nodeRow{Node: node}) }
	for i := range 100 {
		held(fmt.Sprintf("app%d.maya.localhost", i), "two")
	}
	if len(d.last) != 1 {
		t.Errorf("%d entries for one computer", len(d.last))
	}
	for i := range 2 * knownMost {
		held(fmt.Sprintf("n%d.localhost", i), "two")
	}
	if len(d.last) != knownMost {
		t.Errorf("%d hosts are remembered", len(d.last))
	}
	held("maya.localhost", "three")
	first := func() string {
		if names, sure := d.lastKnown("notes.maya.localhost").named(); len(names) > 0 && !sure {
			return names[0]
		}
		return ""
	}
	if got := first(); got != "three" {
		t.Errorf("the first to be asked is %q", got)
	}
	now.advance(knownFor)
	if got := first(); got != "" {
		t.Errorf("after a day it still counts: %q", got)
	}
}

// failingStore fails reads as it is told.
type failingStore struct {
	kv.Store
	err error
}

func (s *failingStore) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	if s.err != nil {
		return s.err
	}
	return s.Store.ViewOf(ctx, rows, fn)
}

// One lookup that took too long says little about the store; three in a row do, and so
// does the store itself.
func TestSlowLookups(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	store := &failingStore{Store: sharedStore(t, now.Now)}
	d := directoryOf(Config{Store: store}, "one", now.Now, slog.New(slog.DiscardHandler))
	find := func(err error) (sure bool) {
		now.advance(freshFor)
		store.err = err
		_, sure = d.finds(t, "notes.maya.localhost")
		return sure
	}
	look := func() {
		t.Helper()
		store.err = nil
		renews(t, d)
		looks(t, d)
	}
	look()
	for range failedMost - 1 {
		if find(context.DeadlineExceeded) {
			t.Error("what failed is taken for sure")
		}
	}
	if !find(nil) {
		t.Error("the store is away for everybody after a slow lookup")
	}
	for range failedMost {
		find(context.DeadlineExceeded)
	}
	if find(nil) {
		t.Error("three in a row failed, and the next is looked for in the store")
	}
	look()
	find(fmt.Errorf("looking: %w", kv.ErrUnavailable))
	if find(nil) {
		t.Error("the store says that it is away, and is asked")
	}
}

// A visitor whom nobody has named a node for costs a few seconds of asking, however many
// nodes are silent.
func TestAskingIsBounded(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	const silent = askedMost
	for i := range silent {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		programs.Must(t, err)
		t.Cleanup(func() { _ = l.Close() }) // who connects is answered by nobody
		err = store.Update(t.Context(), func(tx kv.Tx) error {
			name := fmt.Sprintf("silent%d", i)
			return putRow(tx, keyNodes+name, nodeRow{Node: name, Run: name, Peer: l.Addr().String(), Protocol: nodeProtocol}, lease)
		})
		programs.Must(t, err)
	}
	one := directoryOf(Config{Store: store}, "one", time.Now, slog.New(slog.DiscardHandler))
	renews(t, one)
	looks(t, one)
	store.away.Store(true)
	found := programs.Got(one.Find(t.Context(), "maya.localhost"))(t)
	defer found.Done()
	if _, err := found.Call(t.Context(), Visit{First: []byte("hello")}); err != ErrNoAnswer {
		t.Errorf("the visitor is told %v", err)
	}
	if n := one.Failures(); n == 0 || n > uint64(askedFor/peerDial) {
		t.Errorf("%d nodes were waited for", n)
	}
}

// silentStore swallows reads while it is told to. Like PostgreSQL's it waits for the answer
// longer than its context lasts.
type silentStore struct {
	kv.Store
	silent bool
}

func (s *silentStore) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	if s.silent {
		<-ctx.Done()
		time.Sleep(5 * time.Second)
		return ctx.Err()
	}
	return s.Store.ViewOf(ctx, rows, fn)
}

// Weakness: while a primary was being replaced, a visitor whom nobody said to have waited a
// second for the database, and up to five for this node's own look at it. Checked: a third
// of a second, also where a read outlasts its time, and nobody waits while a read is overdue,
// nor after a few failed until the database answers again.
func TestNobodyWaitsForASilentStore(t *testing.T) {
	t.Parallel()
	for _, ownLook := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := &silentStore{Store: sharedStore(t, time.Now)}
			one := withNews(store, "one")
			one.step(t)
			store.silent = true
			time.Sleep(lookEvery)
			looked := make(chan error, 1)
			if ownLook {
				looking, stop := context.WithTimeout(t.Context(), storeWait)
				defer stop()
				go func() { looked <- one.look(looking) }()
				synctest.Wait()
			}
			var longest time.Duration
			waited := 0
			for began := time.Now(); time.Since(began) < 2*lease; time.Sleep(10 * time.Millisecond) {
				came := time.Now()
				one.finds(t, "notes.maya.localhost")
				if w := time.Since(came); w > 0 {
					waited, longest = waited+1, max(longest, w)
				}
			}
			if waited == 0 || waited > failedMost || longest != anewWait {
				t.Errorf("own look %v: %d visitors waited, one of them %v", ownLook, waited, longest)
			}
			if ownLook {
				if err := <-looked; !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the node's own look: %v", err)
				}
			}
			store.silent = false
			one.step(t)
			one.mu.Lock()
			defer one.mu.Unlock()
			if one.storeIsAway() {
				t.Error("the store answers, and counts as away")
			}
		})
	}
}

// While the store is away nodes are asked in vain only once: who took a visitor is asked
// first for the next. Whether they are there is asked without a visitor, and is no failure.
func TestWhoTookAVisitorIsAskedFirst(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	one, _ := listening(t, Config{Store: store}, "one", declines)
	for _, name := range []string{"a", "b", "c"} {
		other, refused := listening(t, Config{Store: store}, name, declines)
		if name == "c" {
			other, refused = listening(t, Config{Store: store}, name, func(c *Conn) { _ = c.Take(true) })
		}
		renews(t, other)
		defer func() {
			if n := refused.Load(); n != 0 {
				t.Errorf("%s has refused %d connections", name, n)
			}
		}()
	}
	renews(t, one)
	looks(t, one)
	store.away.Store(true)
	found := programs.Got(one.Find(t.Context(), "notes.maya.localhost"))(t)
	defer found.Done()
	conn := programs.Got(found.Call(t.Context(), Visit{First: []byte("hello")}))(t)
	conn.Reset()
	if again, _ := one.lastKnown("maya.localhost").named(); len(again) != 3 || again[0] != "c" {
		t.Errorf("asked next are %v", again)
	}
	one.seenAt = one.seenAt.Add(-cutOffAfter)
	for range silentRounds {
		one.lookAround(t.Context())
	}
	one.greetings.Wait()
	if one.CutOff() || one.Failures() != 0 {
		t.Errorf("cut off: %v, with %d failures", one.CutOff(), one.Failures())
	}
}

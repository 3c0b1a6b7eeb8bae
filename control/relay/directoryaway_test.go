package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

// turnedAway is what a node says to a visitor it turns away.
func turnedAway(t *testing.T, addr, name string) []byte {
	t.Helper()
	got, err := io.ReadAll(visit(t, addr, recordHello(t, &tls.Config{ServerName: name})))
	programs.Must(t, err)
	return got
}

// While the store is away visitors reach their computers by every node, also one that
// was never asked for them before and after the tunnel has moved; nobody is told that
// a name does not exist.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	one, two, three := serveNode(t, store, "one", nil), serveNode(t, store, "two", nil), serveNode(t, store, "three", nil)
	for _, n := range []node{one, two, three} {
		n.sees(t, 3)
	}
	if got := turnedAway(t, one.addr, "nobody.localhost"); !bytes.Equal(got, alertRecord(alertUnrecognizedName)) {
		t.Errorf("a name that is nobody's: %x", got)
	}
	a := connectAgent(t, two.addr, "maya")
	store.away.Store(true)
	store.hall.mu.Lock()
	store.hall.mute = true
	store.hall.mu.Unlock()
	visitor, data, _ := a.visitedAt(one.addr)
	exchange(t, data, visitor, "by a node that was not asked before")
	if got := turnedAway(t, one.addr, "nobody2.localhost"); !bytes.Equal(got, alertRecord(alertInternalError)) {
		t.Errorf("while nobody knows, a name that may be somebody's: %x", got)
	}
	if got := turnedAway(t, one.addr, "nobody.example"); !bytes.Equal(got, alertRecord(alertUnrecognizedName)) {
		t.Errorf("a name outside the domain: %x", got)
	}
	_ = a.control.Close()
	programs.Eventually(t, "the tunnel has ended", func() bool { return two.Stats().Sessions == 0 })
	a = connectAgent(t, three.addr, "maya")
	visitor, data, _ = a.visitedAt(one.addr)
	exchange(t, data, visitor, "at the node it moved to")

	// The others answer: the node stays as it is.
	one.directory.mu.Lock()
	if had := one.directory.last["maya.localhost"]; had.node != "three" {
		t.Errorf("the first to be asked again is %q", had.node)
	}
	one.directory.seenAt = time.Now().Add(-cutOffAfter)
	one.directory.mu.Unlock()
	failures := func() uint64 { return two.Stats().PeerFailures + three.Stats().PeerFailures }
	before := failures()
	one.lookAround(t.Context())
	visitor, data, _ = a.visitedAt(one.addr)
	exchange(t, data, visitor, "after a look around")
	if one.CutOff() || failures() != before {
		t.Errorf("cut off: %v, and %d questions count as failures", one.CutOff(), failures()-before)
	}
}

// What is remembered for when the store is away is bounded, one entry a computer.
func TestLastKnownIsBounded(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	d := directoryOf(Peers{}, "one", now.Now, nil)
	d.nodes, d.seenAt = []nodeRow{{Node: "one"}, {Node: "two"}, {Node: "three"}}, now.Now()
	for i := range 100 {
		d.heldBy(fmt.Sprintf("app%d.maya.localhost", i), nodeRow{Node: "two"})
	}
	if len(d.last) != 1 {
		t.Errorf("%d entries for one computer", len(d.last))
	}
	for i := range 2 * knownMost {
		d.heldBy(fmt.Sprintf("n%d.localhost", i), nodeRow{Node: "two"})
	}
	if len(d.last) != knownMost {
		t.Errorf("%d hosts are remembered", len(d.last))
	}
	d.heldBy("maya.localhost", nodeRow{Node: "three"})
	first := func() string {
		if found := d.lastKnown("notes.maya.localhost"); len(found.nodes) > 0 && !found.sure {
			return found.nodes[0].Node
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
	d := directoryOf(Peers{Store: store}, "one", now.Now, slog.New(slog.DiscardHandler))
	find := func(err error) (sure bool) {
		now.advance(freshFor)
		store.err = err
		return d.find(t.Context(), "notes.maya.localhost").sure
	}
	look := func() {
		t.Helper()
		store.err = nil
		programs.Must(t, d.renew(t.Context()), d.look(t.Context()))
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
	one := serveNode(t, store, "one", nil)
	one.sees(t, silent+1)
	store.away.Store(true)
	if got := turnedAway(t, one.addr, "maya.localhost"); !bytes.Equal(got, alertRecord(alertInternalError)) {
		t.Errorf("the visitor is told %x", got)
	}
	if n := one.Stats().PeerFailures; n == 0 || n > uint64(askedFor/peerDial) {
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
				one.find(t.Context(), "notes.maya.localhost")
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

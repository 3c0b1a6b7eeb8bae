package control

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"porchlight/control/controlapi"
)

// listening is an agent whose control connection carries the sync.
type listening struct {
	told chan controlapi.Snapshot
	over chan error
	stop context.CancelFunc
}

func (b *bench) tell(t *testing.T, credential, has string) listening {
	ctx, stop := context.WithCancel(t.Context())
	l := listening{told: make(chan controlapi.Snapshot), over: make(chan error, 1), stop: stop}
	go func() {
		l.over <- b.Agents.Tell(ctx, credential, netip.MustParseAddr("192.0.2.1"), has, func(s controlapi.Snapshot) error {
			select {
			case l.told <- s:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	t.Cleanup(stop)
	return l
}

// Each change is told once, with a higher number, until the credential ends.
func TestTell(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	l := b.tell(t, e.Credential, "")
	first := <-l.told
	if first.Version == "" || first.Unchanged || first.Line == "" || first.Computer != e.Computer {
		t.Fatalf("%+v", first)
	}
	if again := <-b.tell(t, e.Credential, first.Version).told; !again.Unchanged || again.Version != first.Version {
		t.Errorf("who has it is told %+v", again)
	}
	if err := b.Sessions.SignOutEverywhere(t.Context(), e.AccountID); err != nil {
		t.Fatal(err)
	}
	next := <-l.told
	if next.Version == first.Version || next.Line != first.Line || next.Change <= first.Change {
		t.Errorf("after %d in %s comes %d in %s", first.Change, first.Line, next.Change, next.Line)
	}
	if err := b.Agents.EndCredential(t.Context(), e.Credential); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, <-l.over, controlapi.CodeUnauthorized)
	wantRefusal(t, <-b.tell(t, e.Credential, next.Version).over, controlapi.CodeUnauthorized)
}

// A node that cannot read what other nodes change says so, to those who wait and to
// those who ask, and does not ask the store for that.
func TestTellWhileOutOfStep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	l := b.tell(t, e.Credential, "")
	has := (<-l.told).Version
	b.Agents.watchers.setBehind(true)
	wantRefusal(t, <-l.over, controlapi.CodeUnavailable)
	wantRefusal(t, <-b.tell(t, "not looked up", has).over, controlapi.CodeUnavailable)
	b.Agents.watchers.setBehind(false)
	l = b.tell(t, e.Credential, has)
	if again := <-l.told; !again.Unchanged {
		t.Errorf("%+v", again)
	}
	l.stop()
	if err := <-l.over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A store that was filled from a backup counts in another line: what agents saw before
// has higher numbers.
func TestRestoredStoreBeginsALine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	line := func() string {
		again := ok[*Service](t)(New(b.cfg))
		return ok[controlapi.Snapshot](t)(again.Agents.Snapshot(t.Context(), e.Computer.ID)).Line
	}
	before := line()
	if before != line() {
		t.Error("a start makes another line")
	}
	if err := EndLine(t.Context(), b.cfg.Store); err != nil {
		t.Fatal(err)
	}
	if before == line() {
		t.Error("the line goes on")
	}
}

package control

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// listening is an agent whose control connection carries the sync.
type listening struct {
	told chan controlapi.Snapshot
	over chan error
	stop func()
}

func (b *bench) tell(t *testing.T, credential, has string) listening {
	ctx, leave := context.WithCancel(t.Context())
	l := listening{told: make(chan controlapi.Snapshot), over: make(chan error, 1)}
	stop := b.Feed.Tell(credential, netip.MustParseAddr("192.0.2.1"), has, func(s controlapi.Snapshot) error {
		select {
		case l.told <- s:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func(err error) { l.over <- err })
	l.stop = func() { leave(); stop() }
	t.Cleanup(l.stop)
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
	programs.Must(t, b.Sessions.SignOutEverywhere(t.Context(), e.AccountID))
	next := <-l.told
	if next.Version == first.Version || next.Line != first.Line || next.Change <= first.Change {
		t.Errorf("after %d in %s comes %d in %s", first.Change, first.Line, next.Change, next.Line)
	}
	programs.Must(t, b.Agents.EndCredential(t.Context(), e.Credential))
	wantRefusal(t, <-l.over, controlapi.CodeUnauthorized)
	wantRefusal(t, <-b.tell(t, e.Credential, next.Version).over, controlapi.CodeUnauthorized)
}

// Weakness: an agent that is told asks once, so a credential whose end this node did not
// hear of would be good for ever; and looking each up by itself costs a sleeping computer
// a statement. Checked: within ten minutes all are looked up, many in one read, whose end
// is found loses its sync and nobody else does.
func TestCredentialsAreCheckedTogether(t *testing.T) {
	t.Parallel()
	store := &statements{}
	b := newBench(t, func(c *Config) { store.Store, c.Store = c.Store, store })
	const computers = kv.MaxKeys + 44
	var all []listening
	var computer []controlapi.Enrolled
	for n := range computers {
		e := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), fmt.Sprintf("c%d@example.com", n), fmt.Sprintf("c%d", n)))
		l := b.tell(t, e.Credential, "")
		<-l.told
		all, computer = append(all, l), append(computer, e)
	}
	store.took()
	b.clock.Add(10*time.Minute + time.Second)
	b.Feed.Look(t.Context())
	if reads := store.took(); reads != 1 {
		t.Errorf("%d reads for %d computers", reads, computers)
	}
	b.Feed.Look(t.Context())
	if reads := store.took(); reads != 1 {
		t.Errorf("%d reads when nobody's turn has come", reads)
	}
	// Another program ends one in the store, and tells nobody.
	gone := hashOf(purposeCredential, computer[7].Credential)
	programs.Must(t, b.store.Update(t.Context(), func(tx kv.Tx) error { return tx.Delete(keyCredential(gone)) }))
	b.Feed.Look(t.Context()) // it is looked up every ten minutes, not each time
	b.clock.Add(10*time.Minute + time.Second)
	b.Feed.Look(t.Context())
	wantRefusal(t, <-all[7].over, controlapi.CodeUnauthorized)
	if got := len(b.Feed.Watched()); got != computers-1 || b.Feed.Watches(computer[7].Computer.ID) {
		t.Errorf("%d of %d are still told", got, computers-1)
	}
	if at := b.Feed.Seen.Last(computer[7].Computer.ID, time.Time{}); !at.Equal(b.clock.Now()) {
		t.Errorf("a computer that is told was seen at %v", at)
	}
}

// Weakness: nobody waits for changes any more, so one that comes while another is told has
// to be told after it by whoever tells.
// Checked: the last of many is told, whenever they come. In the bubble one that is lost
// ends the test.
func TestChangeWhileAnotherIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		e := b.owner()
		l := b.tell(t, e.Credential, "")
		last := <-l.told
		for n := range 20 {
			for range 1 + n%3 {
				programs.Must(t, b.Sessions.SignOutEverywhere(t.Context(), e.AccountID))
				if n%2 == 0 {
					synctest.Wait() // the one before is being told
				}
			}
			newest := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID))
			for last.Version != newest.Version {
				next := <-l.told
				if next.Change <= last.Change {
					t.Fatalf("%d is told after %d", next.Change, last.Change)
				}
				last = next
			}
		}
	})
}

// A store that was filled from a backup counts in another line: what agents saw before
// has higher numbers.
func TestRestoredStoreBeginsALine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	line := func() string {
		again := b.node()
		return ok[controlapi.Snapshot](t)(again.Agents.Snapshot(t.Context(), e.Computer.ID)).Line
	}
	before := line()
	if before != line() {
		t.Error("a start makes another line")
	}
	programs.Must(t, EndLine(t.Context(), b.store))
	if before == line() {
		t.Error("the line goes on")
	}
}

// Who runs the service says that a store which lost changes is the right one, while nodes
// run: the one that is asked counts in another line at once, the others at their next look.
func TestNewLineWhileNodesRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	other := b.node()
	line := func(s *Service) string {
		return ok[controlapi.Snapshot](t)(s.Agents.Snapshot(t.Context(), e.Computer.ID)).Line
	}
	before := line(b.Service)
	programs.Must(t, b.Computers.BeginLine(t.Context()))
	now := line(b.Service)
	if now == before || line(other) != before {
		t.Errorf("%s, then %s, and at the other node %s", before, now, line(other))
	}
	other.Feed.Look(t.Context())
	if line(other) != now {
		t.Error("the other node does not follow")
	}
	if again := b.node(); line(again) != now {
		t.Error("a start makes another line")
	}
}

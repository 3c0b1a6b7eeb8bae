package feed

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is what a feed reads. Each credential is its own hash and its computer's id.
type source struct {
	mu      sync.Mutex
	version int
	reads   int
	hangs   int // so many reads are swallowed: only their context ends them
	away    error
	grants  string
}

func (s *source) read(ctx context.Context) error {
	s.mu.Lock()
	s.reads++
	err, hangs := s.away, s.hangs > 0
	if hangs {
		s.hangs--
	}
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (s *source) snapshot(ctx context.Context) (controlapi.Snapshot, error) {
	if err := s.read(ctx); err != nil {
		return controlapi.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return controlapi.Snapshot{Version: strconv.Itoa(s.version), Grants: s.grants}, nil
}

func (s *source) set(change func()) { s.mu.Lock(); defer s.mu.Unlock(); change() }

func (s *source) hang(reads int) { s.set(func() { s.hangs = reads }) }

func (s *source) took() (reads int) {
	s.set(func() { reads, s.reads = s.reads, 0 })
	return reads
}

func newFeed(s *source) *Feed {
	return New(Config{
		First: func(ctx context.Context, credential string, _ netip.Addr, found func(Credential)) (controlapi.Snapshot, error) {
			found(Credential{credential, credential})
			return s.snapshot(ctx)
		},
		Again: func(ctx context.Context, _ Credential) (controlapi.Snapshot, error) { return s.snapshot(ctx) },
		Ended: func(ctx context.Context, _ []Credential) ([]string, error) { return nil, s.read(ctx) },
		Now:   time.Now, Log: slog.New(slog.DiscardHandler),
	})
}

// listening is an agent that is told.
type listening struct {
	told chan controlapi.Snapshot
	over chan error
	stop func()
}

func (f *Feed) listen(t *testing.T, credential, has string) listening {
	ctx, leave := context.WithCancel(t.Context())
	l := listening{told: make(chan controlapi.Snapshot), over: make(chan error, 1)}
	stop := f.Tell(credential, netip.Addr{}, has, func(s controlapi.Snapshot) error {
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

// refused is how long somebody is told to wait who is refused because of this node.
func refused(t *testing.T, err error) (wait time.Duration) {
	t.Helper()
	refusal, is := errors.AsType[*controlapi.Error](err)
	if !is || refusal.Code != controlapi.CodeUnavailable {
		t.Fatalf("%v", err)
	}
	return refusal.RetryAfter
}

// A node that cannot read what other nodes change says so, to those who wait and to
// those who ask, and does not ask the store for that.
func TestTellWhileOutOfStep(t *testing.T) {
	t.Parallel()
	s := &source{}
	f := newFeed(s)
	l := f.listen(t, "anna", "")
	has := (<-l.told).Version
	s.took()
	f.setBehind(true)
	refused(t, <-l.over)
	refused(t, <-f.listen(t, "anna", has).over)
	if s.took() > 0 {
		t.Error("the store was asked")
	}
	f.setBehind(false)
	l = f.listen(t, "anna", has)
	if again := <-l.told; !again.Unchanged || again.Version != has {
		t.Errorf("%+v", again)
	}
	l.stop()
	if f.Watches("anna") || len(f.due(time.Now().Add(time.Hour))) != 0 || len(l.over) > 0 {
		t.Errorf("it is told after it was stopped, over: %d", len(l.over))
	}
}

// Whose credential is no good any more was not here, whoever shows it; who was told was.
func TestOnlyWhoWasToldIsSeen(t *testing.T) {
	t.Parallel()
	s := &source{away: errors.New("the credential ended")} // which First finds once it knows whose it was
	f := newFeed(s)
	if err := <-f.listen(t, "anna", "").over; err != s.away {
		t.Fatalf("over by %v", err)
	}
	if at := f.Seen.Last("anna", time.Time{}); !at.IsZero() {
		t.Errorf("seen at %s", at)
	}
	s.set(func() { s.away = nil })
	l := f.listen(t, "anna", "")
	<-l.told
	l.stop()
	if at := f.Seen.Last("anna", time.Time{}); at.IsZero() {
		t.Error("not seen, and told")
	}
}

// One that lost its connection leaves a watch behind: the oldest of many gives way.
func TestWatchesAreBounded(t *testing.T) {
	t.Parallel()
	f := newFeed(&source{})
	first := f.listen(t, "anna", "")
	<-first.told
	for range watchesPerComputer {
		if len(first.over) > 0 {
			t.Fatal("replaced too early")
		}
		<-f.listen(t, "anna", "").told
	}
	refused(t, <-first.over)
	if n := len(f.byComputer["anna"]); n != watchesPerComputer {
		t.Errorf("%d are told", n)
	}
}

// Weakness: what two agents of a computer are told is one of the other's. Checked: each has
// its watches woken, before Wake returns, until it is stopped, and nobody else's.
func TestWatch(t *testing.T) {
	t.Parallel()
	f := newFeed(&source{})
	woken := map[string]int{}
	watch := func(name, of string) (stop func()) { return f.Watch(of, func() { woken[name]++ }) }
	stop := watch("one", "anna")
	watch("two", "anna")
	watch("other", "ben")
	f.Wake("anna", "nobody")
	stop()
	f.Wake("anna")
	f.WakeAll()
	if woken["one"] != 1 || woken["two"] != 3 || woken["other"] != 1 || !slices.Equal(f.Watched(), []string{"anna", "ben"}) {
		t.Errorf("woken %v, watched %v", woken, f.Watched())
	}
}

// Weakness: who is told can be stopped, replaced, ended with its node and woken at once.
// Checked: at every such moment stop returns, nothing is told after it, and no watch stays.
func TestStopWhileItIsTold(t *testing.T) {
	t.Parallel()
	for n := range 300 {
		f := newFeed(&source{})
		var stopped atomic.Bool
		check := func() {
			if stopped.Load() {
				t.Error("told after it was stopped")
			}
		}
		var overs atomic.Int32
		stop := f.Tell("anna", netip.Addr{}, "", func(controlapi.Snapshot) error { check(); return nil },
			func(error) { check(); overs.Add(1) })
		var others sync.WaitGroup
		for range 3 {
			others.Go(func() { f.Wake("anna") })
		}
		switch n % 4 {
		case 0:
			others.Go(func() { f.setBehind(true) })
		case 1:
			others.Go(f.Drain)
		case 2:
			var newer []func()
			for range watchesPerComputer {
				newer = append(newer, f.Watch("anna", func() {}))
			}
			others.Go(func() {
				for _, stop := range newer {
					stop()
				}
			})
		}
		if n%8 > 3 {
			others.Wait()
		}
		stop()
		stopped.Store(true)
		others.Wait()
		if overs.Load() > 1 {
			t.Errorf("it was over %d times", overs.Load())
		}
		if f.Watches("anna") {
			t.Fatalf("round %d leaves a watch", n)
		}
	}
}

// Weakness: a network that swallows packets ends no read. An agent whose change is read
// then goes on taking what it has for the newest, and a node that cannot read the store
// does not find out.
// Checked: a sync ends when its read has taken 3 s, and at once when the node is found to
// be out of step, or it is stopped; the node finds that out by two reads of 3 s, not by one.
func TestSwallowedReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		f := newFeed(s)
		for _, c := range []struct {
			first, found bool
			want         time.Duration
		}{
			{false, false, readFor},
			{false, true, time.Second},
			{true, false, firstFor},
			{true, true, time.Second},
		} {
			s.hang(0)
			f.setBehind(false)
			var l listening
			if c.first {
				s.hang(99)
				l = f.listen(t, "anna", "")
			} else {
				l = f.listen(t, "anna", "")
				<-l.told
				s.hang(99)
				f.Wake("anna")
			}
			began := time.Now()
			if c.found {
				time.AfterFunc(time.Second, func() { f.setBehind(true) })
			}
			refused(t, <-l.over)
			if took := time.Since(began); took != c.want {
				t.Errorf("%+v: after %v", c, took)
			}
		}
		f.setBehind(false)
		l, began := f.listen(t, "anna", ""), time.Now()
		synctest.Wait()
		if l.stop(); time.Since(began) > 0 || len(l.over) > 0 {
			t.Errorf("stopped after %v, over: %d", time.Since(began), len(l.over))
		}
		for _, c := range []struct {
			hang   int
			behind bool
			want   time.Duration
		}{{1, false, readFor}, {9, true, 2 * readFor}} {
			s.hang(c.hang)
			f.setBehind(false)
			began := time.Now()
			f.Look(t.Context())
			if took, behind := time.Since(began), f.step.Err() != nil; took != c.want || behind != c.behind {
				t.Errorf("%d reads swallowed: behind %t after %v", c.hang, behind, took)
			}
		}
	})
}

// Who is stopped between a look and its read reads nothing.
func TestStoppedBeforeTheRead(t *testing.T) {
	t.Parallel()
	told := &telling{step: t.Context()}
	told.endFor(errStopped)
	ctx, done := told.reading(time.Hour)
	defer done()
	if ctx.Err() == nil {
		t.Error("the read is not cancelled")
	}
}

// A node that is about to end answers nobody first, who would then ask again at once, and
// says when to, to each another time. Who was told already may ask elsewhere at once.
func TestTellWhileEnding(t *testing.T) {
	t.Parallel()
	s := &source{}
	f := newFeed(s)
	l := f.listen(t, "anna", "")
	<-l.told
	f.Drain()
	if wait := refused(t, <-l.over); wait != 0 {
		t.Errorf("who was told is to wait %v", wait)
	}
	f.setBehind(false) // which a look says
	s.took()
	waits := map[time.Duration]bool{}
	for range 5 {
		l := f.listen(t, "anna", "")
		select {
		case s := <-l.told:
			t.Fatalf("told %+v", s)
		case err := <-l.over:
			wait := refused(t, err)
			if wait < time.Second || wait > elsewhereFor {
				t.Errorf("to ask again in %v", wait)
			}
			waits[wait] = true
		}
	}
	if len(waits) < 2 || s.took() > 0 {
		t.Errorf("all ask again after %v, and the store was read", waits)
	}
}

// What ends by itself, with no change of the computer, is read again in ten minutes; where
// nothing does, nobody reads.
func TestWhatEndsByItselfIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{grants: "some"}
		f := newFeed(s)
		l := f.listen(t, "anna", "")
		<-l.told
		s.set(func() { s.version, s.grants = 1, "" })
		began := time.Now()
		if next := <-l.told; next.Version != "1" || time.Since(began) != checkAgainAfter {
			t.Errorf("%+v after %v", next, time.Since(began))
		}
		s.took()
		time.Sleep(3 * checkAgainAfter)
		synctest.Wait()
		if reads := s.took(); reads != 0 {
			t.Errorf("%d reads where nothing ends", reads)
		}
	})
}

// What is left of a look that finds too many credentials due is for the next.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	f := newFeed(&source{})
	for i := range dueAtOnce + 1 {
		w := &watch{Credential: Credential{Computer: strconv.Itoa(i)}, wake: func() {}, checked: time.Now().Add(-checkAgainAfter)}
		f.add(w)
	}
	for _, want := range []int{dueAtOnce, 1, 0} {
		if n := len(f.due(time.Now())); n != want {
			t.Errorf("%d are due, want %d", n, want)
		}
		f.Look(t.Context())
	}
}

// A node that cannot read the store ends the syncs it carries, but not because the store
// has much to do, nor because one read took long.
func TestLookOfANode(t *testing.T) {
	t.Parallel()
	s := &source{}
	f := newFeed(s)
	l := f.listen(t, "anna", "")
	<-l.told
	busy := &kv.BusyError{}
	for n, step := range []struct {
		with   error
		behind bool
	}{
		{busy, false},
		{busy, false},
		{busy, false},
		{nil, false},
		{busy, false},
		{busy, false},
		{busy, false},
		{busy, true},
		{busy, true},
		{nil, false},
		{context.DeadlineExceeded, true},
		{busy, true},
		{nil, false},
		{kv.ErrUnavailable, true},
		{nil, false},
	} {
		s.set(func() { s.away = step.with })
		f.Look(t.Context())
		if is := f.step.Err() != nil; is != step.behind {
			t.Errorf("%d, after %v: behind %t", n, step.with, is)
		}
	}
	refused(t, <-l.over)
}

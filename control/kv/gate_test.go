package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/test/programs"
)

// mostOfOne is how many one waiter may have in the line.
const mostOfOne = mostOfOneWaiter

// line is a gate of one place, which is taken, and what is told of who waits for it.
type waitingLine struct {
	*gate
	t       *testing.T
	came    []string // names of calls, in the order in which they got in
	refused map[string]error
	wg      sync.WaitGroup
	closing chan struct{}
}

func newLine(t *testing.T) (l *waitingLine, free func(answered bool)) {
	l = &waitingLine{t: t, refused: map[string]error{}, closing: make(chan struct{})}
	l.gate = newGate(1, 10*time.Second, l.closing)
	leave := l.got()
	return l, leave
}

// got is a place, at once.
func (l *waitingLine) got() (leave func(answered bool)) {
	return programs.Got(l.enter(l.t.Context()))(l.t)
}

// pass has a call of nobody's wait, which has to get in; it gives its place back at once.
func (l *waitingLine) pass() {
	l.wg.Go(func() {
		leave, err := l.enter(l.t.Context())
		if err != nil {
			l.t.Error(err)
			return
		}
		leave(true)
	})
}

// wait has a call wait in the turn of ctx; it gives its place back at once.
func (l *waitingLine) wait(ctx context.Context, call string) {
	l.wg.Go(func() {
		leave, err := l.enter(ctx)
		if err != nil {
			l.mu.Lock()
			l.refused[call] = err
			l.mu.Unlock()
			return
		}
		l.mu.Lock()
		l.came = append(l.came, call)
		l.mu.Unlock()
		leave(true)
	})
	synctest.Wait() // it is in the line
}

func (l *waitingLine) want(came ...string) {
	l.t.Helper()
	synctest.Wait()
	if !slices.Equal(l.came, came) {
		l.t.Errorf("they came in as %q, want %q", l.came, came)
	}
}

func TestGateTakesTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, free := newLine(t)
		a, b := WithTries(t.Context(), "a"), WithTurn(t.Context(), "b")
		l.wait(a, "a old")
		l.wait(t.Context(), "nobody's")
		l.wait(b, "b")
		l.wait(t.Context(), "nobody's second")
		l.wait(a, "a new")
		l.wait(b, "b later")
		l.wait(First(a), "the node's own")
		l.wait(First(b), "the node's own second")
		if got := l.stats(); got.Waiting != 8 {
			t.Errorf("%+v", got)
		}
		free(true)
		l.want("the node's own", "the node's own second", "a new", "nobody's", "b", "nobody's second", "a old", "b later")
		l.wg.Wait()
		if l.inside != 0 || l.line.Len() != 0 || len(l.byName) != 0 || l.stats() != (Queue{}) {
			t.Errorf("it is not empty: %+v", l.stats())
		}
	})
}

// Weakness: who is gone still costs the database, or keeps a place for ever.
// Checked: neither, also when it goes in the moment it would get in.
func TestGateDropsWhoIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, free := newLine(t)
		ctx, leave := context.WithCancel(WithTurn(t.Context(), "a"))
		l.wait(ctx, "a")
		l.wait(First(ctx), "the node's own")
		l.wait(WithTurn(t.Context(), "b"), "b")
		leave()
		synctest.Wait()
		if got := l.stats(); got != (Queue{Waiting: 1, Dropped: 2}) || l.line.Len() != 1 {
			t.Errorf("%+v, %d turns", got, l.line.Len())
		}
		free(true)
		l.want("b")
		for range 200 {
			free := l.got()
			ctx, leave := context.WithCancel(t.Context())
			l.wg.Go(func() {
				if free, err := l.enter(ctx); err == nil {
					free(true)
				}
			})
			synctest.Wait()
			go free(true)
			leave()
			l.wg.Wait()
			synctest.Wait()
		}
		if l.inside != 0 {
			t.Errorf("%d places are lost", l.inside)
		}
	})
}

// Weakness: a few who ask a great deal fill the line, and everybody else is refused.
// Checked: of a full line the longest turn gives way by who would wait longest; who is
// refused is told when to come back, and not all at once.
func TestGateIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, free := newLine(t)
		one := WithTries(t.Context(), "one")
		for i := range mostOfOne + 1 {
			l.wait(one, fmt.Sprint(i))
		}
		if len(l.refused) != 1 || !errors.Is(l.refused["0"], ErrBusy) {
			t.Errorf("of one computer's the oldest was to give way: %v", l.refused)
		}
		for range mostWaiting - 1 {
			l.pass()
		}
		synctest.Wait()
		if len(l.refused) != mostOfOne || l.refused[fmt.Sprint(mostOfOne)] != nil {
			t.Errorf("the longest turn was to give way to newcomers until one of it was left: %d did", len(l.refused))
		}
		waits := map[time.Duration]bool{}
		for range 10 {
			_, err := l.enter(t.Context())
			busy, ok := errors.AsType[*BusyError](err)
			if !ok || busy.RetryAfter < retryLeast || busy.RetryAfter > retryMost {
				t.Fatalf("one more than may wait: %v", err)
			}
			waits[busy.RetryAfter] = true
		}
		if len(waits) < 5 {
			t.Errorf("all are to come back together, after %v", waits)
		}
		l.wait(First(t.Context()), "the node's own")
		if got := l.stats(); got != (Queue{Waiting: mostWaiting + 1, Refused: mostOfOne + 10}) {
			t.Errorf("%+v", got)
		}
		free(true)
		l.wg.Wait()
		if !slices.Equal(l.came, []string{"the node's own", fmt.Sprint(mostOfOne)}) {
			t.Errorf("%q came", l.came)
		}
	})
}

// Weakness: of many people behind one address those who came first give way to who came
// last. Checked: the last is refused where as many wait as may, and where a newcomer of
// another turn needs the room.
func TestGateKeepsWhoCameFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, free := newLine(t)
		many := WithTurn(t.Context(), "many")
		var want []string
		for i := range mostOfOne {
			l.wait(many, fmt.Sprint(i))
			want = append(want, fmt.Sprint(i))
		}
		l.wait(many, "one too many")
		for range mostWaiting - mostOfOne + 1 {
			l.pass()
		}
		synctest.Wait()
		last := want[len(want)-1]
		if len(l.refused) != 2 || !errors.Is(l.refused["one too many"], ErrBusy) || !errors.Is(l.refused[last], ErrBusy) {
			t.Errorf("one too many and %s were to be refused: %v", last, l.refused)
		}
		free(true)
		l.want(want[:len(want)-1]...)
		l.wg.Wait()
	})
}

// Weakness: somebody whose calls take long, as those that change the same rows do, has
// every place. Checked: half of them stay for others, who need not wait, and no call
// of the first is lost.
func TestGateKeepsPlacesForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const places, calls = 16, 100
		g := newGate(places, time.Hour, nil)
		var wg sync.WaitGroup
		come := func(ctx context.Context, stay time.Duration) {
			leave, err := g.enter(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(stay)
			leave(true)
		}
		for range calls {
			wg.Go(func() { come(WithTurn(t.Context(), "slow"), time.Second) })
		}
		synctest.Wait()
		if got := g.stats().Waiting; got != calls-places/2 {
			t.Errorf("%d of %d wait", got, calls)
		}
		began := time.Now()
		come(t.Context(), 0)
		come(WithTurn(t.Context(), "other"), 0)
		if took := time.Since(began); took != 0 {
			t.Errorf("the others waited %v", took)
		}
		wg.Wait()
		if took, want := time.Since(began), (calls+places/2-1)/(places/2)*time.Second; took != want {
			t.Errorf("the slow ones took %v, want %v", took, want)
		}
		if g.inside != 0 || g.line.Len() != 0 || len(g.byName) != 0 || g.stats() != (Queue{}) {
			t.Errorf("it is not empty: %+v", g.stats())
		}
	})
}

// Weakness: somebody waits for ever. Checked: of a thousand computers that come at
// once, some of them twice, and ask twice each, as the sync of one that a node does not
// know does, none waits longer than three times the median in all.
func TestGateStarvesNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const computers, places, work = 1000, 16, 20 * time.Millisecond
		g := newGate(places, time.Hour, nil)
		var mu sync.Mutex
		var waited []time.Duration
		var wg sync.WaitGroup
		for i := range computers * 5 / 4 {
			wg.Go(func() {
				began := time.Now()
				for range 2 {
					leave, err := g.enter(WithTurn(t.Context(), fmt.Sprint(i%computers)))
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(work)
					leave(true)
				}
				mu.Lock()
				waited = append(waited, time.Since(began))
				mu.Unlock()
			})
		}
		wg.Wait()
		slices.Sort(waited)
		if median, last := waited[len(waited)/2], waited[len(waited)-1]; last > 3*median {
			t.Errorf("the median waited %v, the last %v", median, last)
		}
	})
}

// Who waits is told soon that the database does not answer, and not while the line
// moves, however long that takes.
func TestGateBeforeADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, free := newLine(t)
		for round := range 5 { // the line moves
			l.wait(t.Context(), fmt.Sprint(round))
			time.Sleep(l.patience - time.Second)
			l.wait(First(t.Context()), "next")
			free(true)
			synctest.Wait()
			if len(l.refused) != 0 {
				t.Fatal(l.refused)
			}
			free = l.got()
		}
		l.wait(t.Context(), "late")
		time.Sleep(l.patience / 2)
		free(false)
		synctest.Wait()
		free, _ = l.enter(t.Context())
		l.wait(t.Context(), "later")
		time.Sleep(l.patience)
		synctest.Wait()
		if !errors.Is(l.refused["later"], ErrUnavailable) || len(l.refused) != 1 {
			t.Errorf("%v", l.refused)
		}
		l.wait(t.Context(), "last")
		close(l.closing)
		l.wg.Wait()
		if !errors.Is(l.refused["last"], ErrClosed) {
			t.Errorf("at the end: %v", l.refused["last"])
		}
		free(true)
	})
}

func TestConnsFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cores  int
		trip   time.Duration
		server int
		want   int
	}{
		{1, 0, 100, 16},
		{2, 200 * time.Microsecond, 100, 25},
		{2, 200 * time.Microsecond, 500, 32},
		{2, 10 * time.Millisecond, 100, 25},
		{2, 10 * time.Millisecond, 500, 60},
		{2, 50 * time.Millisecond, 2000, 128},
		{64, 0, 2000, 128},
		{2, time.Second, 20, 16},
	} {
		if got := connsFor(tt.cores, tt.trip, tt.server); got != tt.want {
			t.Errorf("%d cores, %v away, %d there: %d, want %d", tt.cores, tt.trip, tt.server, got, tt.want)
		}
	}
}

package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// latestEnd is by when an end is carried out.
const latestEnd = endsWithin

// failing is a store of which so many reads are going to fail.
type failing struct {
	kv.Store
	views, looks atomic.Int32
}

func (s *failing) View(ctx context.Context, fn func(kv.Tx) error) error {
	if s.views.Add(-1) >= 0 {
		return errors.New("a read failed")
	}
	return s.Store.View(ctx, fn)
}

func (s *failing) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	if s.looks.Add(-1) >= 0 {
		return errors.New("a look failed")
	}
	return s.Store.ViewOf(ctx, rows, fn)
}

// looping is a dated computer in a bubble whose ends only runEnds carries out.
type looping struct {
	*bench
	ahead   atomic.Int64 // nanoseconds by which the clock is
	store   failing
	id, bob string
}

// whereEndsLoop runs a test where the store is this node's own, and where others share it.
func whereEndsLoop(t *testing.T, test func(t *testing.T, l *looping)) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &looping{}
				l.bench, l.id, l.bob = dated(t, func(c *Config) {
					l.store.Store, c.Store, c.SharedStore = c.Store, &l.store, shared
					c.Now = func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }
				})
				test(t, l)
			})
		})
	}
}

func (l *looping) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.People.runEnds(ctx) }()
	l.t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
}

func (l *looping) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (l *looping) want(when string, apps ...string) {
	l.t.Helper()
	if p := l.rowOf(l.id, l.bob); !slices.Equal(p.Apps, apps) {
		l.t.Errorf("%s: %v, want %v", when, p.Apps, apps)
	}
}

// The loop ends a share to the second, with nobody to wake it.
func TestTheLoopEndsWhatIsDue(t *testing.T) {
	whereEndsLoop(t, func(t *testing.T, l *looping) {
		l.run()
		l.pass(time.Hour - time.Second)
		l.want("before the end", "app1", "app2")
		l.pass(time.Second)
		l.want("at the end", "app2")
	})
}

// The loop wakes for an end that is given while it waits for none.
func TestTheLoopWakes(t *testing.T) {
	whereEndsLoop(t, func(t *testing.T, l *looping) {
		ok[controlapi.Person](t)(l.People.SetAccess(t.Context(), l.id, controlapi.SetAccess{AccountID: l.bob, App: "app1", Granted: true, Until: controlapi.UntilNever}))
		l.run()
		l.pass(time.Minute)
		ok[controlapi.Person](t)(l.People.SetAccess(t.Context(), l.id, controlapi.SetAccess{AccountID: l.bob, App: "app1", Granted: true, Until: rfc(l.now().Add(latestEnd / 2))}))
		l.pass(latestEnd / 2)
		l.want("at the end", "app2")
	})
}

// Weakness: a row of the index that cannot be read stood before every end, and none came.
func TestTheLoopPassesAnOddRow(t *testing.T) {
	whereEndsLoop(t, func(t *testing.T, l *looping) {
		l.keep("ends/!", struct{}{})
		l.run()
		l.pass(time.Hour)
		l.want("at the end", "app2")
	})
}

// Weakness: where the first look after a clock was set right failed, people were kept out
// for ten minutes more. Checked: what it had ended is back at the next look, or one try
// later, also where it was set right before this run.
func TestTheLoopBringsBackWhatAClockEnded(t *testing.T) {
	for what, fails := range map[string]func(*failing){
		"no failure":       func(*failing) {},
		"two failed looks": func(s *failing) { s.looks.Store(2) },
		"two failed reads": func(s *failing) { s.views.Store(2) },
	} {
		t.Run(what, func(t *testing.T) {
			whereEndsLoop(t, func(t *testing.T, l *looping) {
				l.run()
				l.ahead.Store(int64(2 * time.Hour))
				l.pass(latestEnd)
				l.want("ahead", "app2")
				l.ahead.Store(0)
				fails(&l.store)
				l.pass(latestEnd + 2*endsAgain)
				l.want("set right", "app1", "app2")
			})
		})
		t.Run(what+" at the start", func(t *testing.T) {
			whereEndsLoop(t, func(t *testing.T, l *looping) {
				l.ahead.Store(int64(2 * time.Hour))
				l.ended()
				l.want("ahead", "app2")
				l.ahead.Store(0)
				fails(&l.store)
				l.run()
				l.pass(2 * endsAgain)
				l.want("set right", "app1", "app2")
			})
		})
	}
}

// What another node ended too early, this one brings back.
func TestTheLoopBringsBackWhatAnotherNodeEnded(t *testing.T) {
	whereEndsLoop(t, func(t *testing.T, l *looping) {
		l.run()
		other := l.node(func(c *Config) { c.Now = func() time.Time { return time.Now().Add(2 * time.Hour) } })
		programs.Got(other.People.endDue(t.Context()))(t)
		l.want("ended by another", "app2")
		l.pass(endsWhole + latestEnd)
		l.want("a whole look later", "app1", "app2")
	})
}

package relay

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// What agents say is handled on stacks that have grown for it, while the goroutines that
// wait for it keep small ones. These are coroutines, and not goroutines: a goroutine that is
// started has another thread wake up and look for work, which costs more than a beat itself.

// deepKept is how many that nobody uses are kept.
const deepKept = 16

type deepStacks chan *deepStack

// deepStack runs heed of a session, once with each next.
type deepStack struct {
	of   *session
	came bool // what heed is told
	next func() (more, ok bool)
	stop func()
}

// heed runs s.heed on a deep stack. An agent that stops in the middle of a frame
// keeps one until it goes on or its time is over.
func (all deepStacks) heed(s *session, came bool) (more bool) {
	var on *deepStack
	select {
	case on = <-all:
	default:
		on = newDeepStack()
	}
	on.of, on.came = s, came
	more, _ = on.next()
	on.of = nil
	select {
	case all <- on:
	default:
		on.stop()
	}
	return more
}

func newDeepStack() *deepStack {
	on := new(deepStack)
	on.next, on.stop = iter.Pull(func(yield func(bool) bool) {
		defer func() {
			if what := recover(); what != nil { // iter would tell of it without saying where
				panic(fmt.Sprintf("%v\n%s", what, debug.Stack()))
			}
		}()
		for yield(on.of.heed(on.came)) {
		}
	})
	return on
}

// end lets go of those that are kept. Nobody may use one.
func (all deepStacks) end() {
	for len(all) > 0 {
		(<-all).stop()
	}
}

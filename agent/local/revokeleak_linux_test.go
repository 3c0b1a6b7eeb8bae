package local

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"porchlight/test/programs"
)

// TestClosedConnectionsLeaveNothing: hundreds of connections of every kind (two
// thousand in `make soak`), closed by pausing their app, leave neither a
// goroutine nor a file descriptor behind. It runs alone, before the tests that
// run together: both are counted for the whole process.
func TestClosedConnectionsLeaveNothing(t *testing.T) {
	const each = 200
	rounds := 3
	if os.Getenv("PORCHLIGHT_SOAK") != "" {
		rounds = 10
	}
	once := func(rounds int) func(*testing.T) {
		return func(t *testing.T) {
			s := newScene(t)
			first := 0 // descriptors after the first round, with what waits for the next visitors
			for round := range rounds {
				var all []*opened
				for i := range each {
					traffic := traffics[i%len(traffics)]
					if traffic == "download" || traffic == "upload" {
						traffic = "WebSocket" // these two would keep both processors busy meanwhile
					}
					from := s.browser
					if traffic == "bearer request" {
						from = s.remote
					}
					all = append(all, from.hold(t, s.app, traffic, fmt.Sprint("round-", round, "-", i)))
				}
				closed, err := s.house.owner.Pause(t.Context(), "notes")
				if err != nil || closed.Closed != each {
					t.Fatalf("round %d: %+v, %v", round, closed, err)
				}
				for _, o := range all {
					o.awaitClosed(t)
				}
				programs.Must(t, s.house.owner.Resume(t.Context(), "notes"))
				if round == 0 {
					first = descriptors(t)
				}
			}
			s.await(t, func() bool {
				state, err := s.house.owner.State(t.Context())
				return err == nil && state.Here == 0 && state.Apps[0].Connections == 0
			})
			s.await(t, func() bool { return descriptors(t) < first+each/2 })
		}
	}
	if !t.Run("a first time, for what a process opens once", once(1)) {
		return
	}
	before, running := descriptors(t), goleak.IgnoreCurrent()
	t.Run("many", once(rounds))
	goleak.VerifyNone(t, running)
	if after := descriptors(t); after > before {
		t.Errorf("%d file descriptors are open, and were %d before", after, before)
	}
}

// descriptors counts what this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open := programs.Got(os.ReadDir("/proc/self/fd"))(t)
	return len(open)
}

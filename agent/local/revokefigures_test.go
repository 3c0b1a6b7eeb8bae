package local

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// How long it takes from the decision to the closed socket, at the visitor. The
// numbers are printed, and nothing but whether a half-open network is noticed at all
// depends on them: `make bench` runs many trials among many open sockets, `make test` a few,
// so that the way itself is tried.
type figures struct{ sockets, trials, slowTrials int }

func howMany() figures {
	if os.Getenv("PORCHLIGHT_FIGURES") != "" {
		return figures{sockets: 500, trials: 200, slowTrials: 10}
	}
	return figures{sockets: 12, trials: 3, slowTrials: 1}
}

// TestFiguresOwnersClick is the owner's own decision, with the control plane up
// and stopped.
func TestFiguresOwnersClick(t *testing.T) {
	t.Parallel()
	n := howMany()
	s := newScene(t)
	s.crowd(t, n.sockets)
	pause := func() error { _, err := s.house.owner.Pause(t.Context(), "notes"); return err }
	resume := func() error { return s.house.owner.Resume(t.Context(), "notes") }
	notes := agentapi.AccessRequest{AccountID: s.bobID, App: "Notes"}
	withdraw := func() error { _, err := s.house.owner.SetAccess(t.Context(), notes); return err }
	give := func() error {
		notes := notes
		notes.Granted = true
		_, err := s.house.owner.SetAccess(t.Context(), notes)
		return err
	}
	s.measure(t, "the owner pauses the app", n.sockets, n.trials, pause, resume)
	s.measure(t, "the owner withdraws the app from a person", n.sockets, n.trials, withdraw, give)
	s.cutOff(t)
	s.measure(t, "the owner pauses the app, control plane stopped", n.sockets, n.trials, pause, resume)
}

// TestFiguresDark is everything closed at once: the last of all sockets counts.
func TestFiguresDark(t *testing.T) {
	t.Parallel()
	n := howMany()
	s := newScene(t)
	var took []time.Duration
	for trial := range n.slowTrials {
		crowd := s.crowd(t, n.sockets)
		began := time.Now()
		closed, err := s.house.owner.GoDark(t.Context())
		if err != nil || closed.Closed != n.sockets {
			t.Fatalf("trial %d: %+v, %v", trial, closed, err)
		}
		for _, o := range crowd {
			<-o.ended
		}
		took = append(took, time.Since(began))
		for _, o := range crowd {
			<-o.gone
		}
		programs.Must(t, s.house.owner.LightUp(t.Context()))
	}
	report(t, fmt.Sprintf("everything dark, until the last of %d sockets", n.sockets), took)
}

// TestFiguresElsewhere is a decision made at another node of the control plane, which
// sends this one no news, with the agent at this one; and the same while the network
// between the agent and its node has silently gone. Then the app's end of the visit is
// measured, too: of the visitor's socket the relay has to be told by a new connection.
func TestFiguresElsewhere(t *testing.T) {
	t.Parallel()
	n := howMany()
	f := startFleet(t)
	f.crowd(t, n.sockets)
	computer := f.computerID(t)
	withdraw := func() error {
		_, err := f.elsewhere.People.SetAccess(t.Context(), computer, controlapi.SetAccess{AccountID: f.bobID, App: f.notesID})
		return err
	}
	give := func() error {
		_, err := f.elsewhere.People.SetAccess(t.Context(), computer, controlapi.SetAccess{AccountID: f.bobID, App: f.notesID, Granted: true})
		return err
	}
	f.measure(t, "a withdrawal at another node without news", n.sockets, n.trials, withdraw, give)
	var took, app []time.Duration
	for trial := range n.slowTrials {
		var victims []*opened
		for _, traffic := range []string{"WebSocket", "HTTP2 stream"} {
			victims = append(victims, f.browser.hold(t, f.app, traffic, fmt.Sprint("half-open ", traffic, trial)))
		}
		f.network.lose()
		began := time.Now()
		programs.Must(t, withdraw())
		for _, victim := range victims {
			<-victim.gone
		}
		app = append(app, time.Since(began))
		for _, victim := range victims {
			victim.awaitClosed(t)
		}
		took = append(took, time.Since(began))
		programs.Must(t, give())
		f.await(t, func() bool { return f.browser.status(t) == http.StatusOK })
	}
	report(t, fmt.Sprintf("a withdrawal at another node, network half-open, among %d sockets", n.sockets), took)
	report(t, "the same, until the app's end of the visit", app)
	// A computer that does not beat each second while something is open learns of it later.
	if least := slices.Min(app); least > tunnelwire.SilenceAsleep*3/4 {
		t.Errorf("half-open: %v at the least", least)
	}
}

// crowd opens sockets that no decision about notes concerns.
func (s *scene) crowd(t *testing.T, n int) []*opened {
	t.Helper()
	crowd := make([]*opened, n)
	for i := range crowd {
		s.crowds++
		crowd[i] = s.photos.hold(t, s.app, "WebSocket", fmt.Sprint("crowd-", s.crowds))
	}
	return crowd
}

// measure has one more socket open at notes, acts, and looks at when it closes;
// then it undoes and does it again.
func (s *scene) measure(t *testing.T, what string, among, trials int, act, undo func() error) {
	t.Helper()
	var took []time.Duration
	for trial := range trials {
		victim := s.browser.hold(t, s.app, "WebSocket", fmt.Sprint(what, trial))
		var acted sync.WaitGroup
		began := time.Now()
		acted.Go(func() {
			if err := act(); err != nil {
				t.Error(err)
			}
		})
		<-victim.ended
		took = append(took, time.Since(began))
		acted.Wait()
		<-victim.gone
		if got := s.browser.status(t); got == http.StatusOK {
			t.Errorf("%s: a new request is answered %d", what, got)
		}
		programs.Must(t, undo())
		s.await(t, func() bool { return s.browser.status(t) == http.StatusOK })
	}
	report(t, fmt.Sprintf("%s, among %d sockets", what, among), took)
}

// report prints the distribution; the third figure is the worst there was.
func report(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	at := func(q float64) time.Duration {
		return took[min(len(took)-1, int(q*float64(len(took))))].Round(10 * time.Microsecond)
	}
	t.Logf("%s: %d trials, p50 %v, p99 %v, most %v", what, len(took), at(0.5), at(0.99), took[len(took)-1].Round(10*time.Microsecond))
}

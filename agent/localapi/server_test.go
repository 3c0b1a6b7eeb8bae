package localapi

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// another is an agent like the one before, which has left.
func (r *rig) another() {
	r.api = New(r.api.cfg)
	r.answer()
}

// TestSwapUnderLoad: while agents come and go, every request is answered, on
// connections that are kept and on new ones.
func TestSwapUnderLoad(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.approved(t, "notes", "Notes")
	var done sync.WaitGroup
	swapped := make(chan struct{})
	for i := range 8 {
		done.Go(func() {
			kept := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
			defer kept.CloseIdleConnections()
			for answered := 0; ; answered++ {
				select {
				case <-swapped:
					if answered == 0 {
						t.Error("nobody asked")
					}
					return
				default:
				}
				resp, err := kept.Post("http://"+r.addr+"/publish", "application/json", strings.NewReader(`{"name":"notes","label":"Notes","localPort":8000}`))
				if err != nil {
					t.Errorf("a request was lost: %v", err)
					return
				}
				_, err = io.Copy(io.Discard, resp.Body) // or the connection would not be kept
				resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("it was answered %s, %v", resp.Status, err)
				}
			}
		})
	}
	for range 50 {
		r.leave()
		r.another()
		if _, err := r.open().Status(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(swapped)
	done.Wait()
}

// TestSwapWaitsForWhatIsUnderWay: the agent that leaves finishes its requests, and
// who comes meanwhile is answered by the next.
func TestSwapWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	r := start(t)
	asked, finish := make(chan struct{}), make(chan struct{})
	r.leave()
	r.api.cfg.Outbox = func(context.Context) ([]agentapi.Mail, error) {
		asked <- struct{}{}
		<-finish
		return nil, nil
	}
	r.another()
	before, after := make(chan error, 1), make(chan error, 1)
	go func() { _, err := r.owner().Outbox(context.Background()); before <- err }()
	<-asked
	left := make(chan struct{})
	go func() { defer close(left); r.leave() }()
	<-r.api.ending
	go func() { _, err := r.owner().Account(context.Background()); after <- err }()
	select {
	case <-left:
		t.Fatal("the agent left a request behind")
	case err := <-after:
		t.Fatalf("an agent that leaves answered: %v", err)
	default:
	}
	close(finish)
	if err := <-before; err != nil {
		t.Errorf("under way: %v", err)
	}
	<-left
	r.another()
	if err := <-after; err != nil {
		t.Errorf("between two agents: %v", err)
	}
}

// TestSwapGivesUpWhatLasts: nobody holds a swap up for ever.
func TestSwapGivesUpWhatLasts(t *testing.T) {
	t.Parallel()
	r := start(t)
	asked := make(chan struct{}, 1)
	r.leave()
	r.api.cfg.Outbox = func(ctx context.Context) ([]agentapi.Mail, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r.another()
	answered := make(chan error, 1)
	go func() { _, err := r.owner().Outbox(context.Background()); answered <- err }()
	<-asked
	r.leave()
	if err := <-answered; err == nil || !strings.Contains(err.Error(), "broke before it answered") {
		t.Errorf("it was answered %v", err)
	}
}

// slowReader takes nothing of an answer until the deadline for it is over.
type slowReader struct {
	*httptest.ResponseRecorder
	over chan struct{} // closed then
}

func (w *slowReader) SetWriteDeadline(until time.Time) error {
	if !until.After(time.Now()) {
		close(w.over)
	}
	return nil
}

func (w *slowReader) Write([]byte) (int, error) {
	<-w.over
	return 0, os.ErrDeadlineExceeded
}

// TestSwapGivesUpWhoDoesNotRead: neither does somebody who takes no answer.
func TestSwapGivesUpWhoDoesNotRead(t *testing.T) {
	t.Parallel()
	r := start(t)
	w := &slowReader{httptest.NewRecorder(), make(chan struct{})}
	give := time.AfterFunc(time.Minute, func() {
		t.Error("the answer was not cut off")
		close(w.over)
	})
	defer give.Stop()
	if !r.api.enter() {
		t.Fatal("no agent answers")
	}
	status := slices.IndexFunc(routes, func(rt route) bool { return rt.path == "/status" })
	go r.api.answer(listenerKind{}, routes[status], w, httptest.NewRequest("GET", "/status", nil))
	r.leave()
}

// TestSwapKeepsStreamsAndRegistrations: a stream of events and a registration made
// with one agent go on with the next.
func TestSwapKeepsStreamsAndRegistrations(t *testing.T) {
	t.Parallel()
	r := start(t)
	capability := r.registered(t, "com.example.notes", os.Getpid()).Capability
	states, end := r.follow(t)
	first := await(t, states, "the state at once", func(agentapi.OwnerState) bool { return true })
	r.leave()
	r.outside.set(func(o *outside) { o.connection.Trouble = "Somebody else." })
	r.another()
	second := await(t, states, "the next agent's state", func(s agentapi.OwnerState) bool { return s.Trouble != "" })
	if second.Seq <= first.Seq || len(second.Registrants) != 1 {
		t.Errorf("after %d: %+v", first.Seq, second)
	}
	beat := registering("com.example.notes", os.Getpid())
	beat.path = "/engine/heartbeat"
	r.wants(t, beat, http.StatusOK, "")
	if !r.reg.Admits(capability) {
		t.Error("its capability does not count any more")
	}
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ended by itself: %v", err)
	}
}

// nothingListens is S2: who waits for an agent is let go, and address, socket
// and DATA/agent.json are gone.
func nothingListens(t *testing.T) {
	t.Parallel()
	r := startWith(t, func(r *rig) { r.arrived = make(chan struct{}, 1) })
	r.leave()
	c := programs.Got(net.Dial("tcp", r.addr))(t)
	defer c.Close()
	post := poster(c, r.addr)
	waiting := make(chan error, 1)
	go func() { waiting <- post("Notes") }()
	<-r.arrived
	r.end()
	if err := <-waiting; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("who waited was answered %v", err)
	}
	if _, err := r.open().Status(t.Context()); !errors.Is(err, agentapi.ErrNotRunning) {
		t.Errorf("the open client says %v", err)
	}
	if _, err := r.owner().State(t.Context()); !errors.Is(err, agentapi.ErrNotRunning) {
		t.Errorf("the owner's client says %v", err)
	}
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Error("somebody listens")
	}
	if _, err := os.Stat(r.socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket: %v", err)
	}
	if _, err := agentapi.ReadRunning(r.dir); !errors.Is(err, agentapi.ErrNotRunning) {
		t.Errorf("agent.json: %v", err)
	}
}

package localapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// follow collects the states of a stream; end stops it and returns its error.
func (r *rig) follow(t *testing.T) (states <-chan agentapi.OwnerState, end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	seen := make(chan agentapi.OwnerState, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- r.owner().Events(ctx, func(s agentapi.OwnerState) { seen <- s })
		close(seen)
	}()
	stop := func() error {
		cancel()
		for range seen {
		}
		select {
		case err := <-ended:
			return err
		default:
			return nil
		}
	}
	t.Cleanup(func() { stop() })
	return seen, stop
}

// await returns the first state for which ok holds.
func await(t *testing.T, states <-chan agentapi.OwnerState, what string, ok func(agentapi.OwnerState) bool) agentapi.OwnerState {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		select {
		case s, open := <-states:
			if !open {
				t.Fatalf("the stream ended before %s", what)
			}
			if ok(s) {
				return s
			}
		case <-deadline.C:
			t.Fatalf("no event said %s", what)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	r := start(t)
	states, end := r.follow(t)
	first := await(t, states, "the state at once", func(agentapi.OwnerState) bool { return true })
	if first.API != r.addr || first.EngineVersion != "1.2.3" || first.Account != connected || first.Apps == nil || first.Notices == nil {
		t.Errorf("the first state is %+v", first)
	}

	programs.Got(r.open().Publish(t.Context(), agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000}))(t)
	asked := await(t, states, "that an app asks", func(s agentapi.OwnerState) bool { return len(s.Apps) == 1 })
	if asked.Seq <= first.Seq || asked.Apps[0].Status != agentapi.StatusPending {
		t.Errorf("after %d: %+v", first.Seq, asked)
	}

	programs.Got(r.owner().Approve(t.Context(), "notes"))(t)
	live := await(t, states, "that it is live", func(s agentapi.OwnerState) bool { return s.Apps[0].Status == agentapi.StatusLive })
	app, _ := r.apps.Lookup("notes")
	for range 3 {
		_, leave := r.access.Enter(access.Identity{AccountID: "b2"}, app.ID, func() {})
		defer leave()
	}
	r.outside.set(func(o *outside) { o.connection.Trouble = "The relay is away." })
	troubled := await(t, states, "the trouble", func(s agentapi.OwnerState) bool { return s.Trouble != "" })
	if troubled.Seq <= live.Seq || troubled.Apps[0].Connections != 3 {
		t.Errorf("after %d: %+v", live.Seq, troubled)
	}

	// Nothing changed: the number says so, here and by GET.
	for range 2 {
		state := programs.Got(r.owner().State(t.Context()))(t)
		if state.Seq != troubled.Seq {
			t.Errorf("the number went from %d to %d by looking", troubled.Seq, state.Seq)
		}
	}
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Errorf("a stream that its reader ended: %v", err)
	}
}

// TestEventsEndAtShutdown: an open stream must not hold the end up.
func TestEventsEndAtShutdown(t *testing.T) {
	t.Parallel()
	r := start(t)
	ended := make(chan error, 1)
	first := make(chan struct{}, 1)
	go func() {
		ended <- r.owner().Events(context.Background(), func(agentapi.OwnerState) { first <- struct{}{} })
	}()
	<-first
	r.end()
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the reader was told %v, not that the stream ended", err)
	}
}

// TestEventsSurviveARestart: a reader that comes back after a restart sees
// numbers that grow still.
func TestEventsSurviveARestart(t *testing.T) {
	t.Parallel()
	r := start(t)
	before := programs.Got(r.owner().State(t.Context()))(t)
	r.end()
	r.serve(t)
	after := programs.Got(r.owner().State(t.Context()))(t)
	if after.Seq <= before.Seq {
		t.Errorf("number %d came after %d", after.Seq, before.Seq)
	}
}

// rawStream opens a stream and leaves the reading to the test.
func (r *rig) rawStream(t *testing.T) (*http.Response, *bufio.Reader) {
	t.Helper()
	c := programs.Got(net.Dial("unix", r.socket))(t)
	t.Cleanup(func() { c.Close() })
	programs.Got(io.WriteString(c, "GET /owner/events HTTP/1.1\r\nHost: localhost\r\nX-Owner-Secret: "+r.secret+"\r\n\r\n"))(t)
	resp := programs.Got(http.ReadResponse(bufio.NewReader(c), nil))(t)
	return resp, bufio.NewReader(resp.Body)
}

func TestEventsHeartbeat(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.server.heartbeat = time.Millisecond // no stream is open yet
	resp, body := r.rawStream(t)
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("%s, %q", resp.Status, got)
	}
	var lines []string
	for range 7 {
		line := programs.Got(body.ReadString('\n'))(t)
		lines = append(lines, line)
	}
	if lines[0] != "event: state\n" || !strings.HasPrefix(lines[1], `data: {"seq":`) || strings.Join(lines[2:], "") != "\n:\n\n:\n\n" {
		t.Errorf("the stream begins with %q", lines)
	}
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	r := start(t)
	for range maxStreams {
		if resp, _ := r.rawStream(t); resp.StatusCode != 200 {
			t.Fatalf("a stream within the bound: %s", resp.Status)
		}
	}
	got := r.send(t, request{method: "GET", path: "/owner/events", socket: true, secret: r.secret})
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "15" {
		t.Errorf("one stream too many: %d, Retry-After %q", got.status, got.header.Get("Retry-After"))
	}
	got.sentence(t)
}

// TestEventsForASlowReader: a reader that does not read misses what came between
// and never the last state, and holds nobody up.
func TestEventsForASlowReader(t *testing.T) {
	t.Parallel()
	r := start(t)
	_, body := r.rawStream(t)
	const changes = 2000
	for i := range changes {
		text := strings.Repeat("x", 4096)
		if i == changes-1 {
			text = "the last"
		}
		r.outside.set(func(o *outside) { o.connection.Trouble = text })
	}
	events := 0
	for {
		line := programs.Got(body.ReadString('\n'))(t)
		if strings.HasPrefix(line, "data: ") {
			events++
		}
		if strings.Contains(line, `"trouble":"the last"`) {
			break
		}
	}
	if events >= changes {
		t.Errorf("%d changes became %d events", changes, events)
	}
}

// The owner's state tells of the certificates of live apps, and of no request's.
func TestCertificatesAreToldOfLiveApps(t *testing.T) {
	t.Parallel()
	r := startWith(t, func(r *rig) {
		r.certificate = func(name string) *agentapi.Certificate { return &agentapi.Certificate{Problem: "about " + name} }
	})
	for _, live := range []bool{false, true} {
		if live {
			r.approved(t, "notes", "Notes")
		} else if _, err := r.open().Publish(t.Context(), agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000}); err != nil {
			t.Fatal(err)
		}
		state := programs.Got(r.owner().State(t.Context()))(t)
		if got := state.Apps[0].Certificate; live != (got != nil) || live && got.Problem != "about notes" {
			t.Errorf("live %v: %+v", live, got)
		}
	}
}

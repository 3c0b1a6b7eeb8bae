package localapi

import (
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/requests"
	"porchlight/test/programs"
)

func (r *rig) visited(t *testing.T, app, path string) {
	t.Helper()
	found, ok := r.apps.Lookup(app)
	if !ok {
		t.Fatalf("no app %s", app)
	}
	r.requests.Add(requests.Visit{App: found.ID, At: time.Now(), Method: "GET", Target: path, Status: 200, Email: "bob@example.com"})
}

// The owner sees what visitors asked, of one app or of all, and waits for what
// comes later; it is gone with its app and with the setting.
func TestRequests(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.approved(t, "notes", "Notes")
	r.approved(t, "wiki", "Wiki")
	ask := func(app string, after uint64, wait int) agentapi.VisitorRequests {
		t.Helper()
		return programs.Got(r.owner().Requests(t.Context(), app, after, wait))(t)
	}
	got := ask("", 0, 0)
	if !got.On || got.Seq == 0 || got.Requests == nil || len(got.Requests) != 0 {
		t.Fatalf("at first: %+v", got)
	}
	r.visited(t, "notes", "/1?q")
	r.visited(t, "wiki", "/2")
	if all := ask("", got.Seq, 0); len(all.Requests) != 2 || all.Requests[0].App != "notes" || all.Requests[0].Path != "/1" {
		t.Errorf("%+v", all)
	}
	got = ask("wiki", 0, 0)
	if len(got.Requests) != 1 || got.Requests[0].Path != "/2" {
		t.Errorf("%+v", got)
	}
	waited := make(chan agentapi.VisitorRequests, 1)
	go func() {
		answer, err := r.owner().Requests(t.Context(), "wiki", got.Seq, agentapi.MaxWait)
		if err != nil {
			t.Error(err)
		}
		waited <- answer
	}()
	r.visited(t, "notes", "/other")
	r.visited(t, "wiki", "/3")
	if answer := <-waited; len(answer.Requests) != 1 || answer.Requests[0].Path != "/3" {
		t.Errorf("after waiting: %+v", answer)
	}
	for _, bad := range []string{"?after=-1", "?after=x", "?wait=9", "?wait=-1", "?after=99999999999999999999"} {
		if _, err := r.owner().Call(t.Context(), "GET", "/owner/requests"+bad, nil); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := r.owner().Requests(t.Context(), "nobody", 0, 0); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("of no app: %v", err)
	}
	programs.Got(r.owner().ChangeSettings(t.Context(), map[string]any{"requests": false}))(t)
	if off := ask("", 0, agentapi.MaxWait); off.On || len(off.Requests) != 0 {
		t.Errorf("off: %+v", off)
	}
	programs.Got(r.owner().ChangeSettings(t.Context(), map[string]any{"requests": nil}))(t)
	if again := ask("", 0, 0); !again.On || len(again.Requests) != 0 {
		t.Errorf("on again: %+v", again)
	}
}

// Who waits for requests does not hold up an agent that ends.
func TestWaitingEndsWithTheAgent(t *testing.T) {
	t.Parallel()
	arrived, log := make(chan struct{}), new(strings.Builder)
	r := startWith(t, func(r *rig) { r.arrived, r.log = arrived, log })
	waited := make(chan error, 1)
	go func() {
		_, err := r.owner().Requests(t.Context(), "", 0, agentapi.MaxWait)
		waited <- err
	}()
	<-arrived
	r.leave()
	if err := <-waited; err != nil && agentapi.CodeOf(err) != agentapi.CodeUnavailable {
		t.Error(err)
	}
	r.end()
	if said := log.String(); strings.Contains(said, "cut off") {
		t.Errorf("the agent waited for who waits: %s", said)
	}
}

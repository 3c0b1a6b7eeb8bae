package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

func greets(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the first page") }

// output is a terminal's two streams.
type output struct {
	mu       sync.Mutex
	out, err bytes.Buffer
}

type stream struct {
	o   *output
	buf *bytes.Buffer
}

func (s stream) Write(p []byte) (int, error) {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	return s.buf.Write(p)
}

func (o *output) terminal() *terminal {
	return newTerminal(stream{o, &o.out}, stream{o, &o.err})
}

func (o *output) stdout() string { o.mu.Lock(); defer o.mu.Unlock(); return o.out.String() }
func (o *output) stderr() string { o.mu.Lock(); defer o.mu.Unlock(); return o.err.String() }

// shell runs commands against one data directory.
type shell struct {
	t   *testing.T
	dir string
}

func (s shell) run(args ...string) (code int, out, err string) {
	s.t.Helper()
	var o output
	code = run(s.t.Context(), append(args, "--data", s.dir), o.terminal())
	return code, o.stdout(), o.stderr()
}

// ok runs a command that must succeed.
func (s shell) ok(args ...string) string {
	s.t.Helper()
	code, out, err := s.run(args...)
	if code != 0 {
		s.t.Fatalf("porchlight %s: exit %d\n%s", strings.Join(args, " "), code, err)
	}
	return out
}

// wants runs a command and holds it to how it ends and what it says: one that does not end
// with 0 prints nothing, and says why elsewhere.
func (s shell) wants(code int, want string, args ...string) {
	s.t.Helper()
	got, out, errs := s.run(args...)
	said := out
	if code != 0 {
		said = errs
	}
	if got != code || !strings.Contains(said, want) || code != 0 && (out != "" || errs == "") {
		s.t.Errorf("porchlight %s: exit %d, want %d with %q\nout: %s\nerr: %s", strings.Join(args, " "), got, code, want, out, errs)
	}
}

// json runs a command with --json and decodes what it prints.
func (s shell) json(into any, args ...string) {
	s.t.Helper()
	out := s.ok(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		s.t.Fatalf("porchlight %s printed %q: %v", strings.Join(args, " "), out, err)
	}
}

// owner is a client of the agent, as its owner's.
func (s shell) owner() *agentapi.Client {
	s.t.Helper()
	return programs.Got((&location{data: s.dir}).owner(s.t.Context()))(s.t)
}

// state is all that the owner sees.
func (s shell) state() agentapi.OwnerState {
	s.t.Helper()
	return programs.Got(s.owner().State(s.t.Context()))(s.t)
}

// ownerApp is what the owner sees of one app.
func (s shell) ownerApp(name string) agentapi.OwnerApp {
	s.t.Helper()
	return programs.Got(appIn(s.state(), name))(s.t)
}

// startAgent runs `porchlight agent --local` until the test ends.
func startAgent(t *testing.T) shell {
	t.Helper()
	return startAgentAs(t, "--local", "--https", "127.0.0.1:0")
}

// startAgentAs runs `porchlight agent` with these flags.
func startAgentAs(t *testing.T, flags ...string) shell {
	t.Helper()
	s := shell{t, filepath.Join(t.TempDir(), "data")}
	ctx, stop := context.WithCancel(context.Background())
	var o output
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"agent", "--data", s.dir, "--api", "127.0.0.1:0"}, flags...), o.terminal())
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("the agent ended with %d: %s", code, o.stderr())
		}
	})
	programs.Eventually(t, "the agent is up", func() bool { return strings.Contains(o.stdout(), "Stop with Ctrl-C") })
	return s
}

// anApp is a program that answers, and its port.
func anApp(t *testing.T, handler http.Handler) (app *httptest.Server, port string) {
	app = programs.Serve(t, handler)
	return app, strings.TrimPrefix(app.URL, "http://127.0.0.1:")
}

package agentapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers every request with handle and returns its address.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestNotRunning(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1" // test/programs, which keeps ports free, needs this package
	private := t.TempDir()
	programs.Must(t, os.Chmod(private, 0o700))
	stale := filepath.Join(private, "owner.sock")
	unix := programs.Got(net.Listen("unix", stale))(t)
	unix.(*net.UnixListener).SetUnlinkOnClose(false)
	unix.Close()
	for what, c := range map[string]*Client{
		"port closed":          New(nobody),
		"socket left behind":   NewOwner(stale, "secret"),
		"socket gone":          NewOwner(filepath.Join(private, "other.sock"), "secret"),
		"directory of it gone": NewOwner(filepath.Join(private, "gone", "owner.sock"), "secret"),
	} {
		if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestStoppedAgent: a process that was stopped keeps its listener, and the
// kernel takes connections for it; nothing is ever answered.
func TestStoppedAgent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	programs.Must(t, err)
	defer l.Close()
	c := New(l.Addr().String())
	c.patience, c.giveUpAfter = 20*time.Millisecond, 20*time.Millisecond
	_, err = c.Status(t.Context())
	if CodeOf(err) != CodeUnavailable || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a call: %v", err)
	}
	if err := c.Events(t.Context(), func(OwnerState) { t.Error("an event of nobody") }); CodeOf(err) != CodeUnavailable {
		t.Errorf("a stream: %v", err)
	}

	c = New(l.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := c.Status(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who gave up: %v", err)
	}
}

// TestSomethingElseListens: another program has the agent's port. Its pages must
// not pass for answers, and it must not send us elsewhere.
func TestSomethingElseListens(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the client followed to %s", r.URL)
	})
	for what, handle := range map[string]http.HandlerFunc{
		"a page": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<p>hello") },
		"JSON that is not ours": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `[1]`)
		},
		"an error page": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere+"/", http.StatusTemporaryRedirect)
		},
		"more than any answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"host":"`)
			chunk := strings.Repeat("x", 1<<20)
			for range maxAnswer>>20 + 1 {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
			io.WriteString(w, `"}`)
		},
	} {
		c := New(serve(t, handle))
		status, err := c.Status(t.Context())
		if CodeOf(err) != CodeUpstream || !strings.Contains(err.Error(), "does not answer like Porchlight") {
			t.Errorf("%s: %v", what, err)
		}
		if status.Host != "" {
			t.Errorf("%s: half an answer was returned", what)
		}
		if err := c.Events(t.Context(), func(OwnerState) {}); CodeOf(err) != CodeUpstream {
			t.Errorf("%s, for events: %v", what, err)
		}
	}
}

func TestConnectionBreaks(t *testing.T) {
	t.Parallel()
	c := New(serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	if _, err := c.Status(t.Context()); CodeOf(err) != CodeUnavailable || !strings.Contains(err.Error(), "broke") {
		t.Errorf("%v", err)
	}
}

// TestOwnerSecretStaysPrivate. Weakness: agent.json outlives a killed agent, and
// its socket may be in a directory for everybody's temporary files. Attack:
// another user makes that directory and listens. Checked: the client connects to
// nothing there.
func TestOwnerSecretStaysPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "porchlight")
	programs.Must(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "owner.sock")
	l := programs.Got(net.Listen("unix", path))(t)
	asked := make(chan string, 1)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get(HeaderOwnerSecret)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "{}")
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })

	if _, err := NewOwner(path, "secret").Account(t.Context()); err != nil || <-asked != "secret" {
		t.Fatalf("in a directory of ours: %v", err)
	}
	programs.Must(t, os.Chmod(dir, 0o755))
	link := filepath.Join(t.TempDir(), "link")
	programs.Must(t, os.Symlink(dir, link))
	for _, path := range []string{path, filepath.Join(link, "owner.sock")} {
		if _, err := NewOwner(path, "secret").Account(t.Context()); CodeOf(err) != CodeForbidden {
			t.Errorf("%s: %v", path, err)
		}
	}
	select {
	case <-asked:
		t.Error("the secret was shown")
	default:
	}
}

func TestNamesAreEscaped(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	c := New(serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.RequestURI
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "{}")
	}))
	programs.Got(c.Unpublish(t.Context(), "a/../b?c#d"))(t)
	if got, want := <-asked, "DELETE /publish/a%2F..%2Fb%3Fc%23d"; got != want {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

func TestRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.json")
	if _, err := ReadRunning(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("before there was an agent: %v", err)
	}
	want := Running{API: "127.0.0.1:8765", PID: 7, Protocol: Protocol, OwnerSocket: "/run/owner.sock", StartedAt: "2026-01-02T03:04:05Z"}
	for range 2 { // the second replaces the first
		programs.Must(t, WriteRunning(dir, want))
	}
	if got, err := ReadRunning(dir); err != nil || got != want {
		t.Errorf("read %+v, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("agent.json: %v, %v", info.Mode(), err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
	for range 2 { // it may be gone
		programs.Must(t, RemoveRunning(dir))
	}
	for content, says := range map[string]string{
		"":                                      "damaged",
		"{":                                     "damaged",
		"{}":                                    "damaged",
		`{"api":"127.0.0.1:8765","protocol":2}`: "protocol 2",
	} {
		programs.Must(t, os.WriteFile(path, []byte(content), 0o600))
		if _, err := ReadRunning(dir); err == nil || errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want it to say %q", content, err, says)
		}
	}
	if err := WriteRunning(filepath.Join(dir, "gone"), want); err == nil {
		t.Error("written into a directory that is not there")
	}
}

func TestEventStream(t *testing.T) {
	t.Parallel()
	c := New(serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/owner/events" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": hello\n\nevent: state\ndata: {\"seq\":1}\n\n")
		fmt.Fprint(w, "event: later\ndata: {\"seq\":2}\n\n")
		fmt.Fprint(w, "event: state\r\ndata: {\"seq\":\r\ndata:3}\r\n\r\n")
		fmt.Fprint(w, "event: state\ndata: {\"seq\":4}\n") // cut short
	}))
	var seen []uint64
	err := c.Events(t.Context(), func(s OwnerState) { seen = append(seen, s.Seq) })
	if !errors.Is(err, io.EOF) || fmt.Sprint(seen) != "[1 3]" {
		t.Errorf("events %v, then %v", seen, err)
	}
}

// TestSilentStream: an agent that was stopped with a stream open sends nothing,
// not even heartbeats.
func TestSilentStream(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	c := New(serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: state\ndata: {}\n\n")
		http.NewResponseController(w).Flush()
		<-heard
		fmt.Fprint(w, ":\n") // the last that is heard
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	events := 0
	err := c.Events(t.Context(), func(OwnerState) {
		if events++; events == 1 {
			c.giveUpAfter = 50 * time.Millisecond
			close(heard)
		}
	})
	if CodeOf(err) != CodeUnavailable || events != 1 {
		t.Errorf("%d events, then %v", events, err)
	}
}

package localapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// strangerVariable has the test binary be a program of another user, which sends
// what it reads, one request a line, to the address the variable holds.
const strangerVariable = "PORCHLIGHT_TEST_STRANGER"

// nobody is the user the other programs of these tests run as.
const nobody = 65534

// asked and answered are the lines between test and stranger.
type asked struct {
	Method, Path, Body, Capability string
	// Hold opens so many connections that say nothing instead, and Leave sends
	// the request without waiting for an answer.
	Hold  int
	Leave bool
}

type answered struct {
	Status     int
	Body       string
	RetryAfter string
	Failed     string
}

func init() {
	beOther = func() {
		if addr := os.Getenv(strangerVariable); addr != "" {
			os.Exit(beStranger(addr))
		}
	}
}

func beStranger(addr string) int {
	var held []net.Conn
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var q asked
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return 1
		}
		var a answered
		switch {
		case q.Hold > 0:
			for range q.Hold {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					a.Failed = err.Error()
					break
				}
				held = append(held, c)
			}
			a.Status = len(held)
		case q.Leave:
			c, err := net.Dial("tcp", addr)
			if err == nil {
				fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", q.Method, q.Path, addr)
				c.Close()
			}
		default:
			a = sendAs(addr, q)
		}
		if out.Encode(a) != nil {
			return 1
		}
	}
	return 0
}

func sendAs(addr string, q asked) answered {
	req, err := http.NewRequest(q.Method, "http://"+addr+q.Path, strings.NewReader(q.Body))
	if err != nil {
		return answered{Failed: err.Error()}
	}
	if q.Body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.Capability != "" {
		req.Header.Set(agentapi.HeaderCapability, q.Capability)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return answered{Failed: err.Error()}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answered{Failed: err.Error()}
	}
	return answered{Status: resp.StatusCode, Body: strings.TrimSpace(string(raw)), RetryAfter: resp.Header.Get("Retry-After")}
}

// stranger is a running program of the user nobody.
type stranger struct {
	t   *testing.T
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Scanner
}

func (r *rig) stranger(t *testing.T) *stranger {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a program as another user; run this test as root")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{strangerVariable + "=" + r.addr}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = t.Output()
	in := programs.Got(cmd.StdinPipe())(t)
	out := programs.Got(cmd.StdoutPipe())(t)
	programs.Must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close() // it ends by itself then
		if err := cmd.Wait(); err != nil {
			t.Errorf("the other user's program: %v", err)
		}
	})
	return &stranger{t: t, in: in, out: bufio.NewScanner(out)}
}

func (s *stranger) send(q asked) answered {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	raw := programs.Got(json.Marshal(q))(s.t)
	programs.Got(s.in.Write(append(raw, '\n')))(s.t)
	if !s.out.Scan() {
		s.t.Fatalf("the other user's program said no more: %v", s.out.Err())
	}
	var a answered
	programs.Must(s.t, json.Unmarshal(s.out.Bytes(), &a))
	if a.Failed != "" {
		s.t.Fatalf("%s %s as another user: %s", q.Method, q.Path, a.Failed)
	}
	return a
}

func publishBody(name string) string {
	return fmt.Sprintf(`{"name":%q,"label":%q,"localPort":9000}`, name, name)
}

// S1: every call of the open tier by a program of another user, and what follows
// for the owner's.
func TestS1EveryOpenCallAsAnotherUser(t *testing.T) {
	t.Parallel()
	r := start(t)
	nobody := r.stranger(t)
	r.approved(t, "notes", "Notes")
	programs.Got(r.open().Publish(t.Context(), agentapi.PublishRequest{Name: "wiki", Label: "Wiki", LocalPort: 8001}))(t)
	before := r.apps.List()
	me := fmt.Sprintf(`{"appId":"org.example.notes","pid":%d}`, os.Getpid())
	programs.Got(r.open().Register(t.Context(), agentapi.RegisterRequest{AppID: "org.example.notes", PID: os.Getpid()}))(t)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/status", "", 200},
		{"GET", "/engine/info", "", 200},
		{"GET", "/publish/notes", "", 200},
		{"GET", "/publish/nothing", "", 404},
		{"POST", "/publish", publishBody("notes"), 403},
		{"POST", "/publish", publishBody("wiki"), 403},
		{"DELETE", "/publish/notes", "", 403},
		{"DELETE", "/publish/wiki", "", 403},
		{"DELETE", "/publish/nothing", "", 404},
		{"POST", "/engine/register", me, 403},
		{"POST", "/engine/heartbeat", me, 404},
		{"POST", "/engine/deregister", `{"appId":"org.example.notes"}`, 200},
		{"GET", "/people", "", 403},
		{"GET", "/owner/state", "", 403},
	} {
		got := nobody.send(asked{Method: c.method, Path: c.path, Body: c.body})
		if got.Status != c.status || got.Status == 403 && !strings.Contains(got.Body, `{"error":"`) {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, got.Status, got.Body, c.status)
		}
	}
	if now := r.apps.List(); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("refusals changed the apps:\n%+v\n%+v", before, now)
	}
	if got := r.reg.Count(); got != 1 {
		t.Errorf("%d registrations after another user deregistered the owner's program", got)
	}

	// Its own name it may ask for, change and withdraw, also once approved.
	for _, c := range []struct {
		method string
		status int
	}{{"POST", 202}, {"POST", 202}, {"DELETE", 200}, {"POST", 202}} {
		if got := nobody.send(asked{Method: c.method, Path: ownPath(c.method), Body: ownBody(c.method)}); got.Status != c.status {
			t.Fatalf("%s of its own name: %d %s", c.method, got.Status, got.Body)
		}
	}
	programs.Got(r.owner().Approve(t.Context(), "theirs"))(t)
	for _, method := range []string{"POST", "DELETE", "POST"} {
		if got := nobody.send(asked{Method: method, Path: ownPath(method), Body: ownBody(method)}); got.Status != 200 {
			t.Errorf("%s of its own app: %d %s", method, got.Status, got.Body)
		}
	}
	if _, err := r.open().Unpublish(t.Context(), "theirs"); err != nil {
		t.Errorf("the owner's program may do everything: %v", err)
	}
}

func ownPath(method string) string {
	if method == "DELETE" {
		return "/publish/theirs"
	}
	return "/publish"
}

func ownBody(method string) string {
	if method == "DELETE" {
		return ""
	}
	return publishBody("theirs")
}

// S1: whoever asked is known over a restart, to the owner too: by which program, and what
// it says of itself besides.
func TestS1WhoAskedIsKept(t *testing.T) {
	t.Parallel()
	r := start(t)
	body := strings.Replace(publishBody("theirs"), "{", `{"assistant":"claude-code",`, 1)
	if got := r.stranger(t).send(asked{Method: "POST", Path: "/publish", Body: body}); got.Status != 202 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	r.end()
	r.serve(t)
	want := agentapi.Asks{Program: "localapi.test", User: "nobody", Assistant: "claude-code"}
	if app := r.apps.OwnerApps(nil)[0]; app.Asks == nil || *app.Asks != want || app.AskedBy == "" {
		t.Errorf("the owner is told of %+v, %q", app.Asks, app.AskedBy)
	}
	if got := r.stranger(t).send(asked{Method: "DELETE", Path: "/publish/theirs"}); got.Status != 200 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

// S1: who is gone before anybody looked is not taken for root, whom the system
// names as the user of a socket that nobody holds any more.
func TestS1WhoHasGoneIsNobody(t *testing.T) {
	t.Parallel()
	r := start(t)
	nobody := r.stranger(t)
	r.approved(t, "notes", "Notes")
	for range 100 {
		nobody.send(asked{Method: "DELETE", Path: "/publish/notes", Leave: true})
	}
	if got := nobody.send(asked{Method: "GET", Path: "/publish/notes"}); !strings.Contains(got.Body, `"live"`) {
		t.Errorf("somebody who did not wait for the answer took the app down: %s", got.Body)
	}
}

// S1: a program of another user cannot fill the queue, nor ask for ever.
func TestS1AFloodOfRequestsLeavesRoom(t *testing.T) {
	t.Parallel()
	r := start(t)
	nobody := r.stranger(t)
	counts := map[int]int{}
	for i := range 300 {
		got := nobody.send(asked{Method: "POST", Path: "/publish", Body: publishBody(fmt.Sprint("flood-", i))})
		counts[got.Status]++
		if got.Status == 429 && !strings.Contains(got.Body, `{"error":"`) {
			t.Fatalf("%s", got.Body)
		}
	}
	if counts[202] != 20 || counts[429] != 280 {
		t.Errorf("300 requests were answered %v, want 20 taken and 280 times 429", counts)
	}
	pub, err := r.open().Publish(t.Context(), agentapi.PublishRequest{Name: "mine", Label: "Mine", LocalPort: 8000})
	if err != nil || pub.Status != agentapi.StatusPending {
		t.Errorf("the owner's program asked after the flood: %+v, %v", pub, err)
	}
}

// S1: nor can it take the connections.
func TestS1ConnectionsOfAnotherUserLeaveRoom(t *testing.T) {
	t.Parallel()
	r := startWith(t, func(r *rig) { r.headerIn = time.Hour }) // the silent ones stay
	nobody := r.stranger(t)
	for range 12 {
		nobody.send(asked{Hold: 100})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 20 {
		if _, err := r.open().Status(ctx); err != nil {
			t.Fatalf("the owner's program found no room: %v", err)
		}
	}
}

// S1: with everybody trusted, the open tier is any local process's.
func TestS1EverybodyTrusted(t *testing.T) {
	t.Parallel()
	r := start(t)
	nobody := r.stranger(t)
	r.approved(t, "notes", "Notes")
	programs.Got(r.owner().ChangeSettings(t.Context(), map[string]any{"trustEverybody": true}))(t)
	me := fmt.Sprintf(`{"appId":"org.example.notes","pid":%d}`, os.Getpid())
	for _, q := range []asked{
		{Method: "POST", Path: "/publish", Body: publishBody("notes")},
		{Method: "DELETE", Path: "/publish/notes"},
		{Method: "POST", Path: "/engine/register", Body: me},
		{Method: "POST", Path: "/engine/heartbeat", Body: me},
		{Method: "POST", Path: "/engine/deregister", Body: `{"appId":"org.example.notes"}`},
	} {
		if got := nobody.send(q); got.Status != 200 {
			t.Errorf("%s %s: %d %s", q.Method, q.Path, got.Status, got.Body)
		}
	}
	if r.reg.Count() != 0 {
		t.Errorf("%d registrations", r.reg.Count())
	}
}

// Answers about users who are none are refused.
func TestAnsweringAboutUsers(t *testing.T) {
	t.Parallel()
	owner, ctx := start(t).owner(), t.Context()
	for id, want := range map[string]agentapi.Code{
		"0": agentapi.CodeInvalid, fmt.Sprint(os.Getuid()): agentapi.CodeInvalid, "4294967000": agentapi.CodeNotFound, "../x": agentapi.CodeNotFound,
	} {
		if _, err := owner.AllowUser(ctx, id); agentapi.CodeOf(err) != want {
			t.Errorf("allow %s: %v", id, err)
		}
	}
	if err := owner.ForgetUser(ctx, "7"); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("%v", err)
	}
}

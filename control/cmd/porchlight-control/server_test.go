package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
	"porchlight/control/serve"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/told"
)

// The tests run the program itself.
var program string

func TestMain(m *testing.M) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name == "GOGC" || strings.HasPrefix(name, envPrefix) {
			os.Unsetenv(name)
		}
	}
	os.Exit(programs.Main(pgtest.Stopping(m), func(dir string) { program = filepath.Join(dir, "porchlight-control") }, "."))
}

// invoke runs a command to its end.
func invoke(t *testing.T, env []string, args ...string) (code int, out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// ok runs a command that must succeed.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	code, out, err := invoke(t, nil, args...)
	if code != 0 {
		t.Fatalf("%s: exit %d\n%s", strings.Join(args, " "), code, err)
	}
	return out
}

func okJSON[T any](t *testing.T, args ...string) (v T) {
	t.Helper()
	out := ok(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%s printed %q: %v", strings.Join(args, " "), out, err)
	}
	return v
}

// server is a porchlight-control serve.
type server struct {
	*rig.Node
	t    *testing.T
	addr string // the first of where it listens
}

// start runs a server on free ports and returns once it listens.
func start(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	return startWith(t, nil, dir, args...)
}

// startWith is start with more in the environment.
func startWith(t *testing.T, env []string, dir string, args ...string) *server {
	t.Helper()
	return startBy(t, nil, env, dir, args...)
}

// startBy has another command become the server, whose own follows.
func startBy(t *testing.T, by, env []string, dir string, args ...string) *server {
	t.Helper()
	r := &rig.Rig{Bin: filepath.Dir(program), Env: append(os.Environ(), env...), Begin: func(cmd *exec.Cmd) (*programs.Process, error) {
		if by != nil {
			with := exec.Command(by[0], append(by[1:], cmd.Args...)...)
			with.Env, cmd = cmd.Env, with
		}
		return programs.Begin(t, cmd), nil
	}}
	n := programs.Got(r.Node(t.Context(), dir, append(serving, args...)...))(t)
	return &server{Node: n, t: t, addr: n.Listens[0]}
}

// serving is what all of them are told.
var serving = []string{"--domain", "porch.test", "--metrics", "127.0.0.1:0", "--log-level", "debug", "--grace", serve.DefaultGrace.String()}

// stop sends SIGTERM and waits for a clean end.
func (s *server) stop() {
	s.t.Helper()
	if code := s.Stop(); code != 0 {
		s.t.Errorf("the server ended with %d:\n%s", code, s.Stderr())
	}
}

// browser speaks to the auth host and trusts the server's authority.
func (s *server) browser() *http.Client {
	s.t.Helper()
	pool := programs.Got(rig.Roots(rig.Authority(s.Data)))(s.t)
	transport := &http.Transport{
		TLSClientConfig:       &tls.Config{RootCAs: pool},
		ExpectContinueTimeout: time.Minute,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.addr)
		},
	}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// agent is the computer with a credential, as far as it is told something.
func (s *server) agent(credential string) *told.Computer {
	s.t.Helper()
	pool := programs.Got(rig.Roots(rig.Authority(s.Data)))(s.t)
	auth := programs.Got(url.Parse(s.AuthURL))(s.t)
	return told.New(s.t, controlapi.Relay{Address: s.addr, ServerName: auth.Hostname()}, pool, credential)
}

// told is what a computer is told now.
func (s *server) told(credential string) controlapi.Snapshot {
	s.t.Helper()
	agent := s.agent(credential)
	defer agent.Close()
	return programs.Got(agent.Next(s.t.Context(), ""))(s.t)
}

func fetch(t *testing.T, c *http.Client, url string) (status int, body string) {
	t.Helper()
	resp := programs.Got(c.Get(url))(t)
	defer resp.Body.Close()
	b := programs.Got(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(b)
}

// probe is a client without connections to keep.
func probe(t *testing.T) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

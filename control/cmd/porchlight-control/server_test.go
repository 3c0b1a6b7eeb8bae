package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// The tests run the program itself.
var program string

func TestMain(m *testing.M) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, envPrefix) {
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
	*programs.Process
	t             *testing.T
	addr, metrics string
	authURL       string
}

// start runs a server on free ports and returns once it listens.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start with more in the environment.
func startWith(t *testing.T, env []string, args ...string) *server {
	t.Helper()
	cmd := exec.Command(program, serveArgs(args)...)
	cmd.Env = append(os.Environ(), env...)
	return startCommand(t, cmd)
}

func serveArgs(args []string) []string {
	return append([]string{"serve", "--domain", "porch.test", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-level", "debug"}, args...)
}

// startCommand runs cmd, which becomes a server, and returns once that listens.
func startCommand(t *testing.T, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{Process: programs.Begin(t, cmd), t: t}
	said, err := s.Says(t.Context(), `Porchlight control plane at (\S+), listening on (\S+)\n(?s:.*)Metrics and health at (\S+)\n`)
	programs.Must(t, err)
	s.authURL, s.addr, s.metrics = said[1], said[2], said[3]
	return s
}

// stop sends SIGTERM and waits for a clean end.
func (s *server) stop() {
	s.t.Helper()
	if code := s.Stop(); code != 0 {
		s.t.Errorf("the server ended with %d:\n%s", code, s.Stderr())
	}
}

// browser speaks to the auth host and trusts pem.
func (s *server) browser(pem string) *http.Client {
	s.t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(pem)) {
		s.t.Fatalf("no certificate in %q", pem)
	}
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

func fetch(t *testing.T, c *http.Client, url string) (status int, body string) {
	t.Helper()
	resp, err := c.Get(url)
	programs.Must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	programs.Must(t, err)
	return resp.StatusCode, string(b)
}

// probe is a client without connections to keep.
func probe(t *testing.T) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

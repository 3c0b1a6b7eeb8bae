//go:build unix

package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/test/programs"
	"porchlight/test/rig"
)

// Weakness: at the limit of open files a node was dead to everybody, its health,
// its metrics and its administration included, and said nothing. Attack: open
// connections from several addresses, some that are kept after a request and some
// that say one byte and no more, until there are no more files to be had. Checked:
// /readyz, /metrics and the socket answer all the while, the log and the metrics
// name the limit, the settings beyond it were lowered aloud, and who comes after
// the flood is served.
func TestAtTheFileLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startBy(t, []string{"sh", "-c", `ulimit -n 256 && exec "$0" "$@"`}, nil, dir, "--limit-handshakes", "2000", "--limit-auth-connections", "2000", "--limit-computers", "2000")
	for _, setting := range []string{"--limit-handshakes", "--limit-auth-connections", "--limit-computers"} {
		programs.Got(s.Logs(t.Context(), `"setting":"`+setting+`"`))(t) // that it was lowered
	}
	f := newFlood(t, s)
	for i := 0; i < 2000 && s.refused("open-files") == 0; i += 20 {
		f.open(20)
	}
	if s.refused("open-files") == 0 {
		t.Fatalf("%d connections do not reach the limit:\n%s", len(f.conns), s.Stderr())
	}
	for range 5 {
		f.open(20)
		for path, want := range map[string]string{"/healthz": `"ok":true`, "/readyz": `"ok":true`, "/metrics": "process_open_fds"} {
			if status, body := fetch(t, probe(t), s.Metrics+path); status != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s at the file limit: %d %s", path, status, body)
			}
		}
		if list := okJSON[[]control.Account](t, "account", "list", "--data", dir); len(list) != 0 {
			t.Errorf("accounts: %+v", list)
		}
	}
	if n := strings.Count(s.Stderr(), `"limit":"open-files"`); n == 0 {
		t.Errorf("the log does not name the limit:\n%s", s.Stderr())
	}
	f.close()
	programs.Eventually(t, "who comes after the flood is served", func() bool {
		resp, err := s.browser().Get(s.AuthURL + "/auth/pubkey")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	s.stop()
}

// refused is how often the metrics say that a limit was reached.
func (s *server) refused(limit string) (n int) {
	s.t.Helper()
	_, body := fetch(s.t, probe(s.t), s.Metrics+"/metrics")
	m := regexp.MustCompile(`porchlight_relay_limited_total\{limit="` + limit + `"\} (\d+)`).FindStringSubmatch(body)
	if m == nil {
		s.t.Fatalf("no number for %s:\n%s", limit, body)
	}
	_, _ = fmt.Sscan(m[1], &n)
	return n
}

// flood is connections to a server that are kept open.
type flood struct {
	server *server
	config *tls.Config
	conns  []net.Conn
}

func newFlood(t *testing.T, s *server) *flood {
	roots := programs.Got(rig.Roots(rig.Authority(s.Data)))(t)
	f := &flood{server: s, config: &tls.Config{RootCAs: roots, ServerName: "control.porch.test"}}
	t.Cleanup(f.close)
	return f
}

// open opens n connections, which may fail: from eight addresses, every other one
// with a request that was answered.
func (f *flood) open(n int) {
	for range n {
		i := len(f.conns)
		dialer := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i/2%8))}}
		conn, err := dialer.Dial("tcp", f.server.addr)
		if err != nil {
			continue
		}
		f.conns = append(f.conns, conn)
		if i%2 == 1 {
			_, _ = conn.Write([]byte{0x16}) // before that the system may keep it from the server
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		secure := tls.Client(conn, f.config)
		if secure.Handshake() != nil {
			continue
		}
		request, _ := http.NewRequest(http.MethodGet, f.server.AuthURL+"/auth/pubkey", nil)
		if request.Write(secure) == nil {
			_, _ = http.ReadResponse(bufio.NewReader(secure), request)
		}
	}
}

func (f *flood) close() {
	for _, conn := range f.conns {
		_ = conn.Close()
	}
	f.conns = nil
}

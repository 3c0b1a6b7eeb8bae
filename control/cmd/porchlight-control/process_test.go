package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/control/mail"
	"porchlight/control/serve"
)

// The tests run the program itself.
var program string

func TestMain(m *testing.M) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, envPrefix) {
			os.Unsetenv(name)
		}
	}
	os.Exit(build(pgtest.Stopping(m)))
}

func build(m pgtest.M) int {
	dir, err := os.MkdirTemp("", "porchlight-control-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "porchlight-control")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
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
	t             *testing.T
	cmd           *exec.Cmd
	addr, metrics string
	authURL       string
	exited        chan struct{}

	mu      sync.Mutex
	log     bytes.Buffer // guarded by mu
	printed bytes.Buffer // to standard output; to be read after the end
}

var (
	listening = regexp.MustCompile(`^Porchlight control plane at (\S+), listening on (\S+)$`)
	measuring = regexp.MustCompile(`^Metrics and health at (\S+)$`)
)

// start runs a server on free ports and returns once it listens.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start with more in the environment.
func startWith(t *testing.T, env []string, args ...string) *server {
	t.Helper()
	s := &server{t: t, exited: make(chan struct{})}
	s.cmd = exec.Command(program, append([]string{"serve", "--domain", "porch.test", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-level", "debug"}, args...)...)
	s.cmd.Env = append(os.Environ(), env...)
	pipe, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := io.TeeReader(pipe, &s.printed)
	s.cmd.Stderr = s
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			s.authURL, s.addr = m[1], m[2]
		}
		if m := measuring.FindStringSubmatch(lines.Text()); m != nil {
			s.metrics = m[1]
			break
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = s.cmd.Wait() // its state says how it ended
		close(s.exited)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it has ended already, mostly
		<-s.exited
	})
	if s.metrics == "" {
		<-s.exited
		t.Fatalf("the server ended instead of serving:\n%s", s.logged())
	}
	return s
}

func (s *server) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

func (s *server) logged() string { s.mu.Lock(); defer s.mu.Unlock(); return s.log.String() }

// stop sends SIGTERM and waits for a clean end.
func (s *server) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	s.wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("the server ended with %d:\n%s", code, s.logged())
	}
}

func (s *server) wait() {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(time.Minute):
		s.t.Fatalf("the server does not end:\n%s", s.logged())
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
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// probe is a client without connections to keep.
func probe(t *testing.T) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// One life of a server: it starts in an empty directory, is administered over
// its socket and, when it is stopped, without it; nothing secret is in the log.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	mails := filepath.Join(t.TempDir(), "mails")
	s := start(t, "--data", dir, "--outbox", mails)
	_, port, _ := net.SplitHostPort(s.addr)
	if want := "https://control.porch.test:" + port; s.authURL != want {
		t.Errorf("auth URL %s, want %s", s.authURL, want)
	}
	for path, want := range map[string]os.FileMode{
		dir: 0o700 | os.ModeDir, filepath.Join(dir, "admin.sock"): 0o600 | os.ModeSocket,
		filepath.Join(dir, "admin.json"): 0o600, filepath.Join(dir, serve.StoreFile): 0o600,
		filepath.Join(dir, "ca", "intermediate-key.pem"): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", path, info, err, want)
		}
	}
	pem := ok(t, "ca", "--data", dir)
	c := s.browser(pem)
	if status, body := fetch(t, c, s.authURL+"/auth/pubkey"); status != 200 || !strings.Contains(body, "PUBLIC KEY") {
		t.Errorf("the public key: %d %s", status, body)
	}

	t.Log("accounts and computers")
	added := okJSON[admin.Added](t, "account", "add", "Anna@Example.net", "--short", "anna", "--data", dir)
	if !added.New || added.Email != "anna@example.net" || added.Credential == "" || added.Computer.URL != "https://anna.porch.test:"+port {
		t.Errorf("account add: %+v", added)
	}
	again := okJSON[admin.Added](t, "account", "add", "anna@example.net", "--short", "anna", "--data", dir)
	if again.New || again.Credential != "" || again.ID != added.ID {
		t.Errorf("account add once more: %+v", again)
	}
	sync := func(credential string) int {
		r, err := http.NewRequest("PUT", s.authURL+"/v1/apps", strings.NewReader("[]"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+credential)
		r.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := sync(added.Credential); got == 401 || got >= 500 {
		t.Errorf("the credential shown once answers %d", got)
	}
	if got := sync(strings.Repeat("x", 43)); got != 401 {
		t.Errorf("a credential made up answers %d", got)
	}
	for _, refused := range [][]string{
		{"account", "add", "nobody"}, {"account", "add", "ben@example.net", "--short", "anna"}, {"account", "add", "ben@example.net", "--short", "www"},
	} {
		if code, _, err := invoke(t, nil, append(refused, "--data", dir)...); code != exitRefused || !strings.HasPrefix(err, "porchlight-control: ") {
			t.Errorf("%v: exit %d, %s", refused, code, err)
		}
	}
	if list := okJSON[[]control.Account](t, "account", "list", "--data", dir); len(list) != 1 || list[0].ID != added.ID {
		t.Errorf("accounts: %+v", list)
	}
	if list := okJSON[[]control.OwnedComputer](t, "computer", "list", "--data", dir); len(list) != 1 || list[0].Owner != "anna@example.net" {
		t.Errorf("computers: %+v", list)
	}

	t.Log("signing in, whose mail is in the outbox and in a file")
	resp, err := c.PostForm(s.authURL+"/signin", map[string][]string{"email": {"anna@example.net"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	var outbox []mail.Entry
	eventually(t, "a mail in the outbox", func() bool {
		outbox = okJSON[[]mail.Entry](t, "outbox", "--data", dir)
		return len(outbox) == 1
	})
	var files []string
	eventually(t, "a mail in a file", func() bool {
		files, _ = filepath.Glob(filepath.Join(mails, "*.txt"))
		return len(files) == 1
	})
	text, err := os.ReadFile(files[0])
	if err != nil || len(outbox[0].Links) == 0 || !strings.Contains(string(text), outbox[0].Links[0]) {
		t.Errorf("the file: %q %v", text, err)
	}

	t.Log("health and metrics, on their own address")
	for path, want := range map[string]string{
		"/healthz": `"ok":true`, "/readyz": `"ok":true`, "/metrics": "porchlight_relay_tunnels 0",
	} {
		if status, body := fetch(t, probe(t), s.metrics+path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _ := fetch(t, c, s.authURL+"/metrics"); status != 404 {
		t.Errorf("the auth host answers /metrics with %d", status)
	}
	if _, body := fetch(t, probe(t), s.metrics+"/metrics"); !strings.Contains(body, `porchlight_http_requests_total{class="4xx",method="GET"} 1`) {
		t.Errorf("requests are not counted:\n%s", body)
	}

	t.Log("a second server of the same directory")
	code, _, refusal := invoke(t, nil, "serve", "--data", dir, "--domain", "porch.test", "--listen", "127.0.0.1:0")
	if code != exitRefused || !strings.Contains(refusal, "in use by another process") {
		t.Errorf("exit %d, %s", code, refusal)
	}

	s.stop()
	t.Log("stopped: the commands open the store themselves")
	if list := okJSON[[]control.OwnedComputer](t, "computer", "list", "--data", dir); len(list) != 1 || list[0].URL != added.Computer.URL {
		t.Errorf("computers: %+v", list)
	}
	if got := ok(t, "ca", "--data", dir); got != pem {
		t.Error("the authority is another one")
	}

	log := s.logged()
	for i, line := range strings.Split(strings.TrimSpace(log), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %d of the log is not JSON: %s", i+1, line)
		}
	}
	link := outbox[0].Links[0]
	secrets := map[string]string{"credential": added.Credential, "link": link[strings.LastIndexByte(link, '=')+1:], "address": "anna@example.net"}
	for what, secret := range secrets {
		if len(secret) < 8 || strings.Contains(log, secret) {
			t.Errorf("the %s is in the log", what)
		}
	}
}

// eventually asks until it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	end := time.NewTimer(time.Minute)
	defer end.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// SIGTERM: a request under way is answered and what it asked for is done, held
// syncs end, new connections find nobody, and those who ask for readiness are told
// at once.
func TestDrain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--data", dir)
	pem := ok(t, "ca", "--data", dir)
	c := s.browser(pem)
	added := okJSON[admin.Added](t, "account", "add", "anna@example.net", "--short", "anna", "--data", dir)
	agent := &controlapi.Client{BaseURL: s.authURL, Credential: added.Credential, HTTP: s.browser(pem)}
	snapshot, err := agent.Sync(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest("GET", s.authURL+controlapi.PathSync, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+added.Credential)
	r.Header.Set("If-None-Match", strconv.Quote(snapshot.Version))
	held, err := s.browser(pem).Do(r) // its head comes at once
	if err != nil {
		t.Fatal(err)
	}
	defer held.Body.Close()

	body, feed := io.Pipe()
	answered := make(chan error, 1)
	go func() {
		r, err := http.NewRequest("POST", s.authURL+"/signin", body)
		if err != nil {
			answered <- err
			return
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		// The body is asked for once the handler reads it.
		r.Header.Set("Expect", "100-continue")
		resp, err := c.Do(r)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusSeeOther {
				err = fmt.Errorf("status %d", resp.StatusCode)
			}
		}
		answered <- err
	}()
	if _, err := io.WriteString(feed, "email=anna%40"); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not ready", func() bool {
		status, text := fetch(t, probe(t), s.metrics+"/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "shutting down")
	})
	eventually(t, "no new connection", func() bool {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	if _, err := io.WriteString(feed, "example.net"); err != nil {
		t.Fatal(err)
	}
	feed.Close()
	if err := <-answered; err != nil {
		t.Errorf("the request under way: %v\n%s", err, s.logged())
	}
	if b, err := io.ReadAll(held.Body); err != nil || !strings.Contains(string(b), `"unchanged":true`) {
		t.Errorf("the held sync: %s %v", b, err)
	}
	s.wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit %d\n%s", code, s.logged())
	}
	if _, err := os.Stat(filepath.Join(dir, "admin.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if mails := okJSON[[]mail.Entry](t, "outbox", "--data", dir); len(mails) != 1 || mails[0].To != "anna@example.net" {
		t.Errorf("of the sign-in under way there are the mails %+v", mails)
	}
}

// With --drain-wait a load balancer sees that this server ends before anybody is
// turned away. A second signal ends it at once.
func TestDrainWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--data", dir, "--drain-wait", "10m")
	pem := ok(t, "ca", "--data", dir)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not ready", func() bool {
		status, _ := fetch(t, probe(t), s.metrics+"/readyz")
		return status == http.StatusServiceUnavailable
	})
	if status, _ := fetch(t, probe(t), s.metrics+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz answers %d", status)
	}
	if status, _ := fetch(t, s.browser(pem), s.authURL+"/auth/pubkey"); status != http.StatusOK {
		t.Errorf("a new connection is answered with %d", status)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.wait()
}

// A backup made while accounts are added holds what was acknowledged before it
// began, and restores a server that its agents trust, on either engine.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--data", dir)
	file := filepath.Join(t.TempDir(), "backup")

	client, err := admin.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var acknowledged []string // guarded by mu
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				email := fmt.Sprintf("p%d-%d@example.net", w, i)
				if _, err := client.AddAccount(ctx, admin.AddAccount{Email: email}); err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, email)
				mu.Unlock()
			}
		})
	}
	count := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(acknowledged) }
	eventually(t, "some accounts", func() bool { return len(count()) > 50 })
	before := count()
	ok(t, "backup", file, "--data", dir)
	eventually(t, "further accounts", func() bool { return len(count()) > len(before)+20 })
	cancel()
	wg.Wait()
	pem := ok(t, "ca", "--data", dir)
	_, key := fetch(t, s.browser(pem), s.authURL+"/auth/pubkey")
	s.stop()

	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v %v", info, err)
	}
	if code, _, err := invoke(t, nil, "backup", file, "--data", dir); code != exitRefused || !strings.Contains(err, "exists already") {
		t.Errorf("a second backup to the same file: exit %d, %s", code, err)
	}
	if code, _, err := invoke(t, nil, "restore", file, "--data", dir); code != exitRefused {
		t.Errorf("a restore over what is there: exit %d, %s", code, err)
	}
	half := filepath.Join(t.TempDir(), "half")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(half, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}

	has := func(emails []string, where ...string) {
		t.Helper()
		there := map[string]bool{}
		for _, a := range okJSON[[]control.Account](t, append([]string{"account", "list"}, where...)...) {
			there[a.Email] = true
		}
		for _, email := range emails {
			if !there[email] {
				t.Errorf("%s was acknowledged before and is not there", email)
			}
		}
	}

	t.Log("into a new directory")
	fresh := filepath.Join(t.TempDir(), "new")
	if code, _, err := invoke(t, nil, "restore", half, "--data", fresh); code != exitRefused || !strings.Contains(err, "damaged") {
		t.Errorf("half a backup: exit %d, %s", code, err)
	}
	ok(t, "restore", file, "--data", fresh)
	has(before, "--data", fresh, "--domain", "porch.test")
	s = start(t, "--data", fresh)
	if got := ok(t, "ca", "--data", fresh); got != pem {
		t.Error("the restored authority is another one")
	}
	if _, got := fetch(t, s.browser(pem), s.authURL+"/auth/pubkey"); got != key {
		t.Error("the restored signing key is another one")
	}
	if code, _, err := invoke(t, nil, "restore", file, "--data", fresh); code != exitRefused || !strings.Contains(err, "stop the control plane first") {
		t.Errorf("a restore into a running server: exit %d, %s", code, err)
	}
	s.stop()

	t.Log("into PostgreSQL and out again")
	db := pgtest.Database(t)
	ok(t, "import", file, "--postgres", db)
	has(before, "--postgres", db, "--domain", "porch.test")
	if code, _, err := invoke(t, nil, "import", file, "--postgres", db); code != exitRefused || !strings.Contains(err, "not empty") {
		t.Errorf("a second import: exit %d, %s", code, err)
	}
	out := filepath.Join(t.TempDir(), "export")
	ok(t, "export", out, "--postgres", db, "--domain", "porch.test")
	back := filepath.Join(t.TempDir(), "back")
	ok(t, "import", out, "--data", back)
	has(before, "--data", back, "--domain", "porch.test")
	if a, b := rows(t, fresh), rows(t, back); !slices.Equal(a, b) {
		t.Errorf("%d rows went and %d came back, or they differ", len(a), len(b))
	}
}

// rows of a data directory, but for what a server writes while it runs.
func rows(t *testing.T, dir string) (out []string) {
	t.Helper()
	store, err := serve.OpenStore(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Dump(t.Context(), func(r kv.Record) error {
		out = append(out, fmt.Sprintf("%q=%q %v", r.Key, r.Value, r.Expires))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// Two servers of one database are one control plane.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	dirs := []string{t.TempDir(), t.TempDir()}
	one := start(t, "--postgres", db, "--data", dirs[0], "--node", "one")
	two := start(t, "--postgres", db, "--data", dirs[1], "--node", "two")
	ok(t, "account", "add", "anna@example.net", "--data", dirs[0])
	if list := okJSON[[]control.Account](t, "account", "list", "--data", dirs[1]); len(list) != 1 {
		t.Errorf("the other node knows %+v", list)
	}
	_, key := fetch(t, one.browser(ok(t, "ca", "--data", dirs[0])), one.authURL+"/auth/pubkey")
	c := two.browser(ok(t, "ca", "--data", dirs[1]))
	if _, got := fetch(t, c, two.authURL+"/auth/pubkey"); got != key {
		t.Error("the nodes have two keys")
	}
	if _, body := fetch(t, probe(t), one.metrics+"/metrics"); !strings.Contains(body, `porchlight_postgres_connections{state="max"} 16`) {
		t.Errorf("no numbers of the database:\n%s", body)
	}
	one.stop()
	if list := okJSON[[]control.Account](t, "account", "list", "--data", dirs[1]); len(list) != 1 {
		t.Errorf("after the first was stopped the other knows %+v", list)
	}
	two.stop()
}

// After a kill the socket is left over, and in nobody's way.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--data", dir)
	ok(t, "account", "add", "anna@example.net", "--data", dir)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.wait()
	if list := okJSON[[]control.Account](t, "account", "list", "--data", dir); len(list) != 1 {
		t.Errorf("without a server: %+v", list)
	}
	s = start(t, "--data", dir)
	if list := okJSON[[]control.Account](t, "account", "list", "--data", dir); len(list) != 1 {
		t.Errorf("with a new one: %+v", list)
	}
	s.stop()
}

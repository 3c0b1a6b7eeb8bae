//go:build clients

package clients

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// reaching is a house with apps that are reached by TCP, each with a port of this computer at
// which porchlight reach listens for it.
type reaching struct {
	*house
	dir string
}

// command is porchlight reach of an app, with no screen on which a browser could open.
func (r *reaching) command(t testing.TB, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(binDir(t), "porchlight"), append([]string{"reach", r.host(name)}, args...)...)
	cmd.Env = append(r.env, "DISPLAY=", "WAYLAND_DISPLAY=")
	return cmd
}

func (r *reaching) host(name string) string { return name + "." + r.account.Host }

// publish gives a port its address, and signs the owner in to reach it: where they listen for
// it, and who does.
func (r *reaching) publish(t testing.TB, name string, port int) (at string, listens *programs.Process) {
	t.Helper()
	r.porchlight(t, "publish", name, "--tcp", "--port", strconv.Itoa(port))
	if said := r.porchlight(t, "approve", name); !strings.Contains(said, "porchlight reach "+r.host(name)) {
		t.Errorf("approving %s says %s", name, said)
	}
	listens = programs.Begin(t, r.command(t, name, "-L", "0"))
	asked := programs.Got(listens.Logs(t.Context(), `at: (https://\S+)`))(t)
	page, err := r.browser.Open(t.Context(), asked[1])
	if err == nil && page.URL.Hostname() != "127.0.0.1" {
		page, err = r.browser.Submit(t.Context(), page, "account", map[string]string{"decision": "allow"})
	}
	if err != nil || page.URL.Hostname() != "127.0.0.1" {
		t.Fatalf("signing in to %s ends at %+v, %v", name, page, err)
	}
	return programs.Got(listens.Says(t.Context(), `is reached at (\S+:\d+)\.`))(t)[1], listens
}

// serve has each connection to a port of this computer taken.
func serve(t testing.TB, take func(*net.TCPConn)) (port int) {
	t.Helper()
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	programs.ServeConns(t, ln, func(conn net.Conn) { take(conn.(*net.TCPConn)) })
	return ln.Addr().(*net.TCPAddr).Port
}

// much is how many bytes are sent through; PORCHLIGHT_REACH_MIB has a run send as many MiB.
func much(t testing.TB) int {
	t.Helper()
	return programs.Got(strconv.Atoi(cmp.Or(os.Getenv("PORCHLIGHT_REACH_MIB"), "64")))(t) << 20
}

// noise are bytes that nothing makes smaller, the same each time.
func noise(n int) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{31}), int64(n)) }

func digestOf(r io.Reader) string {
	h := sha256.New()
	_, _ = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil))
}

// Programs that nobody here wrote, and know nothing of Porchlight, reach an SSH server and a
// database through porchlight reach; much goes through whole, each direction ends by itself,
// and what is open ends with the sign-in.
func TestProgramsReachApps(t *testing.T) {
	r := &reaching{emptyHouse(t), t.TempDir()}
	r.signIn(t)
	t.Run("ssh and rsync", r.ssh)
	t.Run("psql", r.psql)
	t.Run("much, half-closed, and revoked", r.digests)
}

// sshd starts Debian's server as this user, on a port of its own, and returns the configuration
// of a client that reaches it.
func (r *reaching) sshd(t testing.TB) (config string) {
	t.Helper()
	port, giveBack, err := programs.Port()
	programs.Must(t, err)
	t.Cleanup(giveBack)
	in := func(name string) string { return filepath.Join(r.dir, name) }
	for _, key := range []string{"host", "key"} {
		programs.Got(programs.Output(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in(key))))(t)
	}
	if os.Getuid() == 0 {
		programs.Must(t, os.MkdirAll("/run/sshd", 0o755)) // without which it does not start
	}
	write := func(name, text string) {
		programs.Must(t, os.WriteFile(in(name), []byte(text), 0o600))
	}
	write("server", fmt.Sprintf(`Port %d
ListenAddress 127.0.0.1
HostKey %s
AuthorizedKeysFile %s
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
`, port, in("host"), in("key.pub")))
	server := programs.Begin(t, exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", in("server")))
	programs.Got(server.Logs(t.Context(), "Server listening on 127.0.0.1"))(t)
	r.publish(t, "ssh", port)
	write("known", "porch "+string(programs.Got(os.ReadFile(in("host.pub")))(t)))
	write("client", fmt.Sprintf(`Host *
ProxyCommand "%s" reach %s --stdio
HostKeyAlias porch
UserKnownHostsFile %s
GlobalKnownHostsFile none
StrictHostKeyChecking yes
IdentityFile %s
IdentitiesOnly yes
BatchMode yes
User %s
`, filepath.Join(binDir(t), "porchlight"), r.host("ssh"), in("known"), in("key"), programs.Got(user.Current())(t).Username))
	return in("client")
}

func (r *reaching) ssh(t *testing.T) {
	config := r.sshd(t)
	run := func(in io.Reader, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env, cmd.Stdin = append(r.env, "DISPLAY=", "WAYLAND_DISPLAY="), in
		out, err := programs.Output(cmd)
		programs.Must(t, err)
		return string(out)
	}
	const n = 8 << 20
	if got := run(noise(n), "ssh", "-F", config, "porch", "sha256sum; echo it ended"); got != digestOf(noise(n))+"  -\nit ended\n" {
		t.Errorf("ssh says %q", got)
	}
	from, to := filepath.Join(r.dir, "from"), filepath.Join(r.dir, "to")
	programs.Must(t, os.MkdirAll(filepath.Join(from, "in it"), 0o755))
	for i, name := range []string{"one", "in it/two", "in it/none"} {
		programs.Must(t, os.WriteFile(filepath.Join(from, name), programs.Got(io.ReadAll(noise([]int{4 << 20, 3333, 0}[i])))(t), 0o640))
	}
	run(nil, "rsync", "-a", "-e", `ssh -F "`+config+`"`, from+"/", "porch:"+to)
	if diff, err := exec.Command("diff", "-r", from, to).CombinedOutput(); err != nil {
		t.Errorf("rsync left %s", diff)
	}
	if again := run(nil, "rsync", "-ai", "-e", `ssh -F "`+config+`"`, "porch:"+to+"/", from); again != "" {
		t.Errorf("back again, rsync brings %s", again)
	}
}

func (r *reaching) psql(t *testing.T) {
	server := programs.Got(pgtest.Start(pgtest.Options{}))(t)
	t.Cleanup(func() { programs.Must(t, server.Close()) })
	u := programs.Got(url.Parse(server.Database(t)))(t)
	port := serve(t, func(conn *net.TCPConn) { // it has a socket and no port
		to, err := net.Dial("unix", filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
		if err != nil {
			return
		}
		defer to.Close()
		go func() { _, _ = io.Copy(to, conn); _ = to.(*net.UnixConn).CloseWrite() }()
		_, _ = io.Copy(conn, to)
	})
	at, _ := r.publish(t, "db", port)
	host, listens, err := net.SplitHostPort(at)
	programs.Must(t, err)
	cmd := exec.Command("psql", "-X", "-q", "-A", "-t", "-h", host, "-p", listens, "-U", u.Query().Get("user"), "-d", strings.TrimPrefix(u.Path, "/"),
		"-c", "create table t as select g, md5(g::text) as m from generate_series(1, 50000) g", "-c", "select count(*), sum(length(m)) from t")
	if got := string(programs.Got(programs.Output(cmd))(t)); got != "50000|1600000\n" {
		t.Errorf("psql says %q", got)
	}
}

// digests is an app that says what it was sent once that has ended, and nothing before.
func (r *reaching) digests(t *testing.T) {
	came := make(chan struct{}, 9)
	at, listens := r.publish(t, "digest", serve(t, func(conn *net.TCPConn) {
		came <- struct{}{}
		_, _ = io.WriteString(conn, digestOf(conn))
	}))
	dial := func() *net.TCPConn { return programs.Got(net.Dial("tcp", at))(t).(*net.TCPConn) }
	n := much(t)
	conn := dial()
	defer conn.Close()
	_, err := io.Copy(conn, noise(n))
	programs.Must(t, err, conn.CloseWrite())
	if got := programs.Got(io.ReadAll(conn))(t); string(got) != digestOf(noise(n)) {
		t.Errorf("%d bytes arrive as %q", n, got)
	}
	cmd := r.command(t, "digest", "--stdio")
	cmd.Stdin = bytes.NewReader([]byte("a few"))
	if got := string(programs.Got(programs.Output(cmd))(t)); got != digestOf(strings.NewReader("a few")) {
		t.Errorf("by input and output it says %q", got)
	}

	// A page in a browser gets nowhere, whatever it sends.
	page := dial()
	defer page.Close()
	_, err = io.WriteString(page, "POST / HTTP/1.1\r\nHost: "+at+"\r\nOrigin: https://evil.example\r\nContent-Length: 0\r\n\r\n")
	programs.Must(t, err)
	if got, err := io.ReadAll(page); len(got) > 0 || err == nil {
		t.Errorf("a page reads %q, %v", got, err)
	}
	programs.Got(listens.Logs(t.Context(), "a browser connected"))(t)

	open := dial()
	defer open.Close()
	_, err = io.WriteString(open, "unfinished")
	programs.Must(t, err)
	for range 4 { // so it is at the app
		select {
		case <-came:
		case <-listens.Done():
			t.Fatal("porchlight reach ended")
		}
	}
	var grants []agentapi.Grant
	programs.Must(t, r.agent.Run(&grants, "grants", "list"))
	for _, grant := range grants {
		r.revokeHere(t, grant.ID)
	}
	if got, err := io.ReadAll(open); len(got) > 0 || err == nil {
		t.Errorf("after it was revoked, what was open reads %q, %v", got, err)
	}
	next := dial()
	defer next.Close()
	if got, err := io.ReadAll(next); len(got) > 0 || err == nil {
		t.Errorf("a new connection reads %q, %v", got, err)
	}
	programs.Got(listens.Logs(t.Context(), "the sign-in is over"))(t)
	listens.Signal(os.Interrupt)
	if code := listens.Wait(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// Package pgtest gives tests a PostgreSQL server of their own: real, private,
// and gone afterwards.
//
// Start makes a cluster in a new directory and runs the server of the Debian
// package postgresql on a unix socket in it, so no port is taken and a server
// the machine runs already does not matter. PostgreSQL refuses to run as root;
// a test that is root runs it as the user postgres, or nobody. A test binary
// starts one server, asks it for a new Database in each test, and stops it:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Stopping(m)) }
//
// Without the server's programs the test fails; it is never skipped.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"porchlight/test/programs"
)

const (
	superuser = "porchlight"
	startWait = 60 * time.Second
)

// Options of a server; the zero value is fine.
type Options struct {
	// Durable makes every commit wait for the disk, as in service. Tests do
	// without: what a killed server wrote is in the system's memory all the same.
	Durable bool
	// Settings are more of the server's own, each as "name=value".
	Settings []string
}

// Server is a running PostgreSQL server.
type Server struct {
	bin, dir string
	opts     Options
	uid, gid int // run as; -1 for as ourselves
	number   atomic.Int64

	mu      sync.Mutex // protects what follows
	exited  chan struct{}
	log     *bytes.Buffer // of the run under way, read after exited is closed
	process *os.Process   // nil when it does not run
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Database makes an empty database on the one server this test binary shares,
// which the first call starts, and returns its URL.
func Database(tb testing.TB) string {
	tb.Helper()
	shared.once.Do(func() { shared.server, shared.err = Start(Options{}) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server.Database(tb)
}

// M is what testing.M is to TestMain.
type M interface{ Run() int }

// Stopping runs m and then ends the shared server, if a test started one.
func Stopping(m M) M { return stopping{m} }

type stopping struct{ M }

func (s stopping) Run() int {
	code := s.M.Run()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Start makes a cluster and runs its server until Close. On Linux the server
// also ends when this process dies before it could call that.
func Start(opts Options) (*Server, error) {
	bin, err := Programs()
	if err != nil {
		return nil, err
	}
	uid, gid, err := Owner()
	if err != nil {
		return nil, err
	}
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, opts: opts, uid: uid, gid: gid}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.StartAgain(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// newDir is a directory for a server. Its path has a space in it, as may be that of any
// directory for temporary files, and is short: a socket's has room for 104 bytes.
func newDir() (string, error) { return os.MkdirTemp("", "pg test-") }

// Programs is the directory of the newest server installed.
func Programs() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is well-formed
	if len(found) == 0 {
		if path, err := exec.LookPath("postgres"); err == nil {
			return filepath.Dir(path), nil
		}
		return "", errors.New("no PostgreSQL server is installed, which this test runs against: install the Debian package postgresql (build/setup.sh test)")
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

func (s *Server) prepare() error {
	if err := s.own(s.dir); err != nil {
		return err
	}
	cmd := s.command("initdb", "--pgdata", s.dir+"/data", "--username", superuser, "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// Owner is the user a server agrees to run as: -1 for who we are, and where that is root,
// postgres or nobody.
func Owner() (uid, gid int, err error) {
	if os.Getuid() != 0 {
		return -1, -1, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return 0, 0, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres or nobody: %w", err)
	}
	if uid, err = strconv.Atoi(u.Uid); err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	return uid, gid, err
}

// own gives a directory to the server's user.
func (s *Server) own(dir string) error {
	if s.uid < 0 {
		return nil
	}
	return os.Chown(dir, s.uid, s.gid)
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	confine(cmd, s.uid, s.gid)
	return cmd
}

// StartAgain runs the server after Kill or Shutdown, and returns once it takes
// connections.
func (s *Server) StartAgain() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	durable := "off"
	if s.opts.Durable {
		durable = "on"
	}
	args := []string{"-D", s.dir + "/data", "-c", "listen_addresses=", "-c", "unix_socket_directories=" + s.dir,
		"-c", "fsync=" + durable, "-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "max_wal_size=1GB"}
	for _, setting := range s.opts.Settings {
		args = append(args, "-c", setting)
	}
	cmd := s.command("postgres", args...)
	log := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		// The signal that comes with our death is bound to the thread that
		// started the process, which therefore has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is nobody's business: whoever ended it knows
			close(exited)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	s.process, s.exited, s.log = cmd.Process, exited, log
	return s.await(exited)
}

// await tries to connect until the server lets us, ends, or takes too long.
func (s *Server) await(exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.url("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-exited:
			s.process = nil
			return fmt.Errorf("PostgreSQL ended instead of serving:\n%s", s.log)
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w", err)
		case <-retry.C:
		}
	}
}

// PID is the process that all others of the server are children of, or 0 when it does
// not run.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.Pid
}

// Socket is the unix socket it listens on.
func (s *Server) Socket() string { return s.dir + "/.s.PGSQL.5432" }

// Kill ends the server as a crash would: at once, every process of it, leaving
// recovery to the next start.
func (s *Server) Kill() error { return s.signal(syscall.SIGQUIT) }

// Shutdown ends the server as its service does when it is restarted: sessions
// are cut off, and what was committed is written out.
func (s *Server) Shutdown() error { return s.signal(syscall.SIGINT) }

func (s *Server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	if err := s.process.Signal(sig); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	select {
	case <-s.exited:
	case <-time.After(startWait):
		return errors.New("PostgreSQL did not stop")
	}
	s.process = nil
	return nil
}

// Standby makes another server that copies this one, which from then on says of a
// commit that it is kept only once the copy has it. The URLs of its databases are
// the same but for the host.
func (s *Server) Standby() (*Server, error) {
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	other := &Server{bin: s.bin, dir: dir, opts: s.opts, uid: s.uid, gid: s.gid}
	if err := s.copyTo(other); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.Exec("alter system set synchronous_standby_names = '*'", "select pg_reload_conf()"); err != nil {
		return nil, errors.Join(err, other.Close())
	}
	return other, nil
}

func (s *Server) copyTo(other *Server) error {
	if err := s.own(other.dir); err != nil {
		return err
	}
	cmd := other.command("pg_basebackup", "--pgdata", other.dir+"/data", "--host", s.dir, "--username", superuser,
		"--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	return other.StartAgain()
}

// Beside is the URL of a database of another server, which this one copies or is copied
// by, that names both, this one first.
func (s *Server) Beside(other *Server, database string) string {
	return strings.Replace(database, escape(other.dir), escape(s.dir+","+other.dir), 1)
}

// Exec runs statements as the superuser, each on its own.
func (s *Server) Exec(statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// Close ends the server and removes its files.
func (s *Server) Close() error { return errors.Join(s.Kill(), os.RemoveAll(s.dir)) }

// Database is NewDatabase of a test.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	url, err := s.NewDatabase()
	programs.Must(tb, err)
	return url
}

// SetClock has what connects to a database from now on be told a time of its own, which is
// an expression of SQL; that of the server is pg_catalog.clock_timestamp(). What is
// connected hears of it where it was so before.
func SetClock(tb testing.TB, database, expression string) {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), database)
	programs.Must(tb, err)
	defer conn.Close(context.Background())
	for _, statement := range []string{
		`create or replace function public.clock_timestamp() returns timestamptz language sql as $$ select (` + expression + `)::timestamptz $$`,
		`alter database ` + pgx.Identifier{conn.Config().Database}.Sanitize() + ` set search_path = public, pg_catalog`,
	} {
		_, err := conn.Exec(context.Background(), statement)
		programs.Must(tb, err)
	}
}

// NewDatabase makes an empty database and returns its URL. It is left to Close.
func (s *Server) NewDatabase() (url string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return "", fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	name := fmt.Sprintf("test%d", s.number.Add(1))
	if _, err := conn.Exec(ctx, "create database "+name); err != nil {
		return "", fmt.Errorf("make a database: %w", err)
	}
	return s.url(name), nil
}

func (s *Server) url(database string) string {
	return "postgres:///" + database + "?host=" + escape(s.dir) + "&user=" + superuser
}

// escape is for a database's URL, in which a + is no space, unlike in other URLs.
func escape(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

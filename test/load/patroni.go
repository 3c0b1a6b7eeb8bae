package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

const (
	patroniScope = "porch"
	pgSuperuser  = "porchlight"
	// formWait is how long the servers may take until one is the primary and the others
	// copy it, also after one was killed.
	formWait = 2 * time.Minute
	goneWait = 20 * time.Second
)

// cluster is PostgreSQL servers under Patroni, which writes down in etcd who of them is
// the primary, and has commits wait until another one has them. Its settings are those
// that docs/operating.md tells operators.
type cluster struct {
	dir, bin string
	uid, gid int // run as; -1 for as ourselves
	etcd     *programs.Process
	members  []*member
}

// member is one server with its Patroni, as on a machine of its own.
type member struct {
	name, config, data string
	port, api          int
	patroni            *programs.Process
	dead               bool // killed, and not begun since: its numbers of processes are other programs' now
}

const patroniConfig = `
scope: %[1]s
name: %[2]s
restapi: {listen: "127.0.0.1:%[3]d", connect_address: "127.0.0.1:%[3]d"}
etcd3: {host: "127.0.0.1:%[4]d"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    synchronous_mode: true
    synchronous_mode_strict: false
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 300}
      pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
  initdb: [{encoding: UTF8}, {locale: C}]
postgresql:
  listen: "127.0.0.1:%[5]d"
  connect_address: "127.0.0.1:%[5]d"
  data_dir: %[6]s
  bin_dir: %[7]s
  pgpass: %[6]s.pgpass
  parameters: {unix_socket_directories: %[8]s, shared_buffers: 64MB}
  authentication:
    superuser: {username: %[9]s, password: trusted}
    replication: {username: copies, password: trusted}
    rewind: {username: rewinds, password: trusted}
`

// openCluster starts etcd and n servers, and returns when they copy each other.
func openCluster(ctx context.Context, n int) (c *cluster, err error) {
	for program, of := range map[string]string{"patroni": "patroni", "patronictl": "patroni", "etcd": "etcd-server"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is not installed: install the Debian package %s (build/setup.sh load)", program, of)
		}
	}
	c = &cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.bin, err = pgtest.Programs(); err != nil {
		return c, err
	}
	if c.uid, c.gid, err = pgtest.Owner(); err != nil {
		return c, err
	}
	if c.dir, err = os.MkdirTemp("", "patroni-"); err != nil {
		return c, err
	}
	if c.uid >= 0 {
		if err = os.Chown(c.dir, c.uid, c.gid); err != nil {
			return c, err
		}
	}
	ports, err := freePorts(2 + 2*n)
	if err != nil {
		return c, err
	}
	if err = c.startEtcd(ports[0], ports[1]); err != nil {
		return c, err
	}
	for i := range n {
		m := &member{name: fmt.Sprint("pg", i+1), api: ports[2+2*i], port: ports[3+2*i]}
		m.config, m.data = filepath.Join(c.dir, m.name+".yml"), filepath.Join(c.dir, m.name)
		text := fmt.Sprintf(patroniConfig, patroniScope, m.name, m.api, ports[0], m.port, m.data, c.bin, c.dir, pgSuperuser)
		if err = os.WriteFile(m.config, []byte(text), 0o644); err != nil { // its passwords are none
			return c, err
		}
		c.members = append(c.members, m)
		if err = c.begin(m); err != nil {
			return c, err
		}
	}
	_, err = c.formed(ctx)
	return c, err
}

// freePorts are free ports of 127.0.0.1, all different.
func freePorts(n int) (ports []int, err error) {
	for range n {
		port, giveBack, err := programs.Port()
		if err != nil {
			return nil, err
		}
		giveBack() // the system gives it to nobody
		ports = append(ports, port)
	}
	return ports, nil
}

func (c *cluster) startEtcd(clients, peers int) (err error) {
	here := func(port int) string { return fmt.Sprint("http://127.0.0.1:", port) }
	c.etcd, err = c.run(syscall.SIGKILL, "etcd", "--name", patroniScope, "--data-dir", filepath.Join(c.dir, "etcd"),
		"--listen-client-urls", here(clients), "--advertise-client-urls", here(clients),
		"--listen-peer-urls", here(peers), "--initial-advertise-peer-urls", here(peers), "--initial-cluster", patroniScope+"="+here(peers))
	return err
}

// begin starts a member's Patroni, which starts its server, and ends it where we die.
func (c *cluster) begin(m *member) (err error) {
	m.dead = false
	m.patroni, err = c.run(syscall.SIGTERM, "patroni", m.config)
	return err
}

// run starts a program that gets a signal when this process dies.
func (c *cluster) run(death syscall.Signal, name string, args ...string) (*programs.Process, error) {
	cmd := c.command(name, args...)
	cmd.SysProcAttr.Pdeathsig = death
	// Into a file, of which the servers that it starts can have the other end for ever.
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	type started struct {
		p   *programs.Process
		err error
	}
	said := make(chan started, 1)
	go func() {
		// That signal is bound to the thread that started the process, which has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := programs.Start(cmd)
		said <- started{p, err}
		if err == nil {
			<-p.Done()
		}
	}()
	s := <-said
	return s.p, s.err
}

func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC", "HOME=" + c.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the Ctrl-C of whoever measures is not for it
	if c.uid >= 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(c.uid), Gid: uint32(c.gid)}
	}
	return cmd
}

// state is what Patroni says of its members.
type state struct {
	Members []struct {
		Name, Role, State string
		Timeline          int
	}
}

func (s state) of(role string) string {
	for _, m := range s.Members {
		if m.Role == role {
			return m.Name
		}
	}
	return ""
}

// whole says that everybody runs, and copies the primary of now.
func (s state) whole(n int) bool {
	running := 0
	for _, m := range s.Members {
		if (m.State == "running" || m.State == "streaming") && m.Timeline == s.Members[0].Timeline {
			running++
		}
	}
	return running == n && s.of("leader") != "" && s.of("sync_standby") != ""
}

// formed waits until all members are there and a commit waits for one that copies.
func (c *cluster) formed(ctx context.Context) (s state, err error) {
	for end := time.Now().Add(formWait); time.Now().Before(end); {
		for _, m := range c.members {
			select {
			case <-m.patroni.Done():
				return s, fmt.Errorf("%s ended, and its Patroni: %s", m.name, c.lastLines())
			default:
			}
			if s, err = m.state(ctx); err == nil && s.whole(len(c.members)) {
				return s, nil
			}
		}
		if err := rest(ctx, lookEvery); err != nil {
			return s, err
		}
	}
	return s, fmt.Errorf("the servers do not copy each other: %+v, %w\n%s", s, err, c.lastLines())
}

// lastLines are what Patroni and etcd said last.
func (c *cluster) lastLines() string {
	raw, _ := os.ReadFile(filepath.Join(c.dir, "log")) // what is not there says nothing
	return string(raw[max(0, len(raw)-8<<10):])
}

func (m *member) state(ctx context.Context) (s state, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/cluster", m.api), nil)
	if err != nil {
		return s, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	return s, json.NewDecoder(res.Body).Decode(&s)
}

// databaseURL is the URL of a database by some of the servers.
func databaseURL(database string, members ...*member) string {
	var hosts []string
	for _, m := range members {
		hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port)))
	}
	u := url.URL{Scheme: "postgres", User: url.User(pgSuperuser), Host: strings.Join(hosts, ","), Path: database, RawQuery: "sslmode=disable"}
	return u.String()
}

// newDatabase makes one and returns its URL, which names every server, once all have it:
// a driver that is told by one that there is no such database asks no other.
func (c *cluster) newDatabase(ctx context.Context) (string, error) {
	const name = "load"
	conn, err := pgx.Connect(ctx, databaseURL("postgres", c.members...)+"&target_session_attrs=read-write")
	if err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "create database "+name)
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return "", err
	}
	for _, m := range c.members {
		for end := time.Now().Add(formWait); ; {
			if conn, err = pgx.Connect(ctx, databaseURL(name, m)); err == nil {
				_ = conn.Close(ctx) // nothing was asked of it
				break
			}
			if time.Now().After(end) || rest(ctx, lookEvery) != nil {
				return "", err
			}
		}
	}
	return databaseURL(name, c.members...), nil
}

// switchover is the planned one, to the server that has every commit.
func (c *cluster) switchover(ctx context.Context) error {
	s, err := c.formed(ctx)
	if err != nil {
		return err
	}
	_, err = programs.Output(c.command("patronictl", "-c", c.members[0].config, "switchover", "--force",
		"--leader", s.of("leader"), "--candidate", s.of("sync_standby"), patroniScope))
	return err
}

// killPrimary is kill -9 of everything on the primary's machine, and returns whose that is.
func (c *cluster) killPrimary(ctx context.Context) (*member, error) {
	s, err := c.formed(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range c.members {
		if m.name == s.of("leader") {
			return m, m.kill()
		}
	}
	return nil, fmt.Errorf("the primary, %q, is nobody's", s.of("leader"))
}

// kill ends Patroni, then the server's first process, and all that this one has started.
func (m *member) kill() error {
	if m.dead {
		return nil
	}
	m.dead = true
	var all []int
	raw, err := os.ReadFile(filepath.Join(m.data, "postmaster.pid"))
	if err == nil {
		first, _, _ := strings.Cut(string(raw), "\n")
		server, err := strconv.Atoi(first)
		if err != nil {
			return fmt.Errorf("the server's process: %w", err)
		}
		all = append([]int{server}, children(server)...)
	} else if !errors.Is(err, fs.ErrNotExist) { // it does not run
		return err
	}
	m.patroni.Kill()
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended needs nothing
	}
	for end := time.Now().Add(goneWait); time.Now().Before(end); time.Sleep(lookEvery / 5) {
		left := 0
		for _, pid := range all {
			if runs(pid) {
				left++
			}
		}
		if left == 0 {
			return nil
		}
	}
	return fmt.Errorf("processes of %s do not end: %v", m.name, all)
}

// children are the processes that one has started, and that run.
func children(parent int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, file := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && field(pid, 1) == strconv.Itoa(parent) {
			all = append(all, pid)
		}
	}
	return all
}

// runs says whether a process does: one that has ended and nobody has looked at does not.
func runs(pid int) bool {
	s := field(pid, 0)
	return s != "" && s != "Z" && s != "X"
}

// field is one of those in /proc/PID/stat after the process's name, or "".
func field(pid, i int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	return f[i]
}

// Close ends everything and removes its files.
func (c *cluster) Close() (err error) {
	for _, m := range c.members {
		if m.patroni != nil {
			err = errors.Join(err, m.kill())
		}
	}
	if c.etcd != nil {
		c.etcd.Kill()
	}
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

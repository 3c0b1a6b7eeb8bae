package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"debug/buildinfo"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// contender is a proxy under measurement.
type contender struct {
	name string
	addr string
	pid  int
	// header is what its visitors send to be let in: name and value.
	header [2]string
}

// The contenders, as results name them.
const (
	oursCookie = "Porchlight, cookie"
	oursBearer = "Porchlight, access token"
	nginx      = "nginx, no sign-in"
	caddy      = "Caddy, no sign-in"
	caddyAuth  = "Caddy, forward_auth"

	beforeCookie = "Porchlight before, cookie"
	beforeBearer = "Porchlight before, access token"
)

// stage is the processes of one round.
type stage struct {
	dir     string // of this round
	started []*exec.Cmd

	cookie, bearer, nginx, caddy, caddyAuth contender

	beforeCookie, beforeBearer contender
}

// openStage starts an app, an authoriser and every contender. certificates is
// where cert.pem and key.pem are.
func openStage(ctx context.Context, s settings, dir, certificates string) (st *stage, err error) {
	for _, dir := range []string{dir, filepath.Join(dir, "before")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		for _, name := range []string{"cert.pem", "key.pem"} {
			if err := os.Symlink(filepath.Join(certificates, name), filepath.Join(dir, name)); err != nil {
				return nil, err
			}
		}
	}
	started := &stage{dir: dir}
	st = started
	defer func() {
		if err != nil {
			started.close()
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	app, _, err := st.role(ctx, self, "app")
	if err != nil {
		return nil, err
	}
	authoriser, _, err := st.role(ctx, self, "authoriser")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(app.Addr)
	if err != nil {
		return nil, err
	}
	for _, proxy := range []struct {
		program, dir, cookieName, bearerName string
		cookie, bearer                       *contender
	}{
		{self, dir, oursCookie, oursBearer, &st.cookie, &st.bearer},
		{s.before, filepath.Join(dir, "before"), beforeCookie, beforeBearer, &st.beforeCookie, &st.beforeBearer},
	} {
		if proxy.program == "" {
			continue
		}
		is, pid, err := st.role(ctx, proxy.program, "proxy", proxy.dir, port, s.profile)
		if err != nil {
			return nil, err
		}
		*proxy.cookie = contender{proxy.cookieName, is.Addr, pid, [2]string{"Cookie", is.Cookie}}
		*proxy.bearer = contender{proxy.bearerName, is.Addr, pid, [2]string{"Authorization", "Bearer " + is.Token}}
	}
	session := [2]string{"Cookie", "session=anything"}
	for _, peer := range []struct {
		to      *contender
		name    string
		config  string
		command []string
	}{
		{&st.nginx, nginx, nginxConfig, []string{"nginx", "-p", dir, "-c"}},
		{&st.caddy, caddy, caddyConfig, []string{s.caddy, "run", "--adapter", "caddyfile", "--config"}},
		{&st.caddyAuth, caddyAuth, caddyAuthConfig, []string{s.caddy, "run", "--adapter", "caddyfile", "--config"}},
	} {
		if !strings.Contains(peer.name, s.contenders) {
			continue
		}
		addr, pid, err := st.peer(ctx, peer.name, peer.command, peer.config, app.Addr, authoriser.Addr)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", peer.name, err)
		}
		*peer.to = contender{peer.name, addr, pid, session}
	}
	return st, nil
}

// close ends every process and waits for it.
func (st *stage) close() {
	for _, cmd := range st.started {
		_ = cmd.Process.Signal(syscall.SIGTERM) // one that has ended needs none
	}
	for _, cmd := range st.started {
		_ = cmd.Wait() // how it ended says nothing about what was measured
	}
	st.started = nil
}

// start begins a process that ends with ctx.
func (st *stage) start(ctx context.Context, cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	st.started = append(st.started, cmd)
	return nil
}

// role starts this program, or that of an earlier version, as something else and
// reads where it listens.
func (st *stage) role(ctx context.Context, program, role string, args ...string) (r ready, pid int, err error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, 0, err
	}
	if err := st.start(ctx, cmd); err != nil {
		return r, 0, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return r, 0, fmt.Errorf("the %s did not start: %w", role, err)
	}
	return r, cmd.Process.Pid, json.Unmarshal(line, &r)
}

// peer writes a configuration, starts a program with it and waits until it
// listens.
func (st *stage) peer(ctx context.Context, name string, command []string, config, app, authoriser string) (addr string, pid int, err error) {
	// Peers cannot be told to choose a port: one that is free now is theirs.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", 0, err
	}
	addr = ln.Addr().String()
	if err := ln.Close(); err != nil {
		return "", 0, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	text := strings.NewReplacer("HOST", host, "PORT", port, "DIR", st.dir, "APP", app, "AUTHORISER", authoriser).Replace(config)
	file := filepath.Join(st.dir, "config-"+port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", 0, err
	}
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], file)...)
	cmd.Env = append(os.Environ(), "HOME="+st.dir, "XDG_DATA_HOME="+st.dir, "XDG_CONFIG_HOME="+st.dir)
	log, err := os.Create(file + ".log")
	if err != nil {
		return "", 0, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := st.start(ctx, cmd); err != nil {
		return "", 0, err
	}
	for range 100 {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return addr, cmd.Process.Pid, c.Close()
		}
		select {
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	said, err := os.ReadFile(log.Name())
	if err != nil {
		return "", 0, err
	}
	return "", 0, fmt.Errorf("%s does not listen: %s ", name, bytes.TrimSpace(said))
}

// cpu is the processor time a contender has used so far, user and system, with
// all its processes. The kernel counts in ticks of 10 ms.
func (c contender) cpu() (time.Duration, error) {
	total, err := ticks(c.pid)
	if err != nil {
		return 0, err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", c.pid, c.pid))
	if err != nil {
		return 0, err
	}
	for child := range strings.FieldsSeq(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			return 0, err
		}
		n, err := ticks(pid)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return time.Duration(total) * 10 * time.Millisecond, nil
}

func ticks(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold anything; utime and stime are the 14th
	// and 15th fields, the 12th and 13th after it.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		return 0, err
	}
	return user + system, nil
}

// writeCertificate makes the one certificate everybody serves: ECDSA P-256,
// like those of our own authority.
func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
}

// versions names what is compared and where.
func versions(caddyProgram string) []string {
	said := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			return name + " (which version is not known)"
		}
		line, _, _ := strings.Cut(string(out), "\n")
		return strings.TrimSpace(line)
	}
	return []string{strings.TrimPrefix(said("nginx", "-v"), "nginx version: "), "Caddy " + moduleVersion(caddyProgram), said("h2load", "--version"), "kernel " + said("uname", "-r")}
}

// moduleVersion is that of the Caddy a program was built with, also where it is
// a dependency of the module that was built, and says "unknown" of itself.
func moduleVersion(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return "unknown"
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if strings.HasSuffix(m.Path, "caddyserver/caddy/v2") {
			return m.Version + " (" + info.GoVersion + ")"
		}
	}
	return "unknown"
}

func loadAverage() string {
	f, err := os.Open("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	line, err := io.ReadAll(f)
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(line))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

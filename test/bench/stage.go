package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"embed"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"porchlight/test/programs"
)

// configs are the peers' configurations.
//
//go:embed configs
var configs embed.FS

// contender is a program under measurement.
type contender struct {
	name string
	addr string
	pid  int // 0 for nobody
	// helpers are the processes at the other side, which count when whole is set.
	helpers []int
	whole   bool
	// header is what its visitors send to be let in: name and value.
	header [2]string
	// device is the certificate that its visitors show, if any.
	device []tls.Certificate
	// tokens are refresh tokens of a control plane's clients, and client who those are.
	tokens []string
	client [2]string
	// cookies are those of its people, ownerAddr is where its owner's click arrives, and
	// relays are those its visitors may come by.
	cookies   []string
	ownerAddr string
	relays    []string
	// took and used are the time from its start until it answered, and the processor's.
	took, used time.Duration
}

// stage is the processes of one round.
type stage struct {
	settings
	dir        string   // of this round, with cert.pem and key.pem
	self       string   // this program
	env        []string // of the roles that are started, beside this process's
	app        ready
	contenders []contender
	browser    *browser // nil until a page is loaded
	started    []*exec.Cmd
	onClose    []func()
}

// openStage starts the app that everybody stands before, and who stands there. The
// certificate is that of the directory above.
func openStage(ctx context.Context, s settings, dir string, start func(*stage, context.Context) error) (st *stage, err error) {
	st = &stage{settings: s, dir: dir}
	if err := errors.Join(st.link(dir), st.link(filepath.Join(dir, "before")), st.link(filepath.Join(dir, "device"))); err != nil {
		return nil, err
	}
	if st.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if st.app, _, err = st.role(ctx, st.self, "app"); err == nil {
		err = start(st, ctx)
	}
	if err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// link makes a directory with the one certificate, which is beside the stages'.
func (st *stage) link(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"cert.pem", "key.pem"} {
		if err := os.Symlink(filepath.Join(filepath.Dir(st.dir), name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// stand adds a contender, where it is to be measured.
func (st *stage) stand(c contender) {
	if st.measures(c.name) {
		st.contenders = append(st.contenders, c)
	}
}

// profileOf is the file for a profile of one role, or empty.
func (st *stage) profileOf(role string) string {
	if info, err := os.Stat(st.profile); err == nil && info.IsDir() {
		return filepath.Join(st.profile, role+".pprof")
	}
	return st.profile
}

// close ends every process and waits for it.
func (st *stage) close() {
	for _, f := range st.onClose {
		f()
	}
	for _, cmd := range st.started {
		_ = cmd.Process.Signal(syscall.SIGTERM) // one that has ended needs none
	}
	for _, cmd := range st.started {
		_ = cmd.Wait() // how it ended says nothing about what was measured
	}
	st.started, st.onClose = nil, nil
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
	cmd.Env = append(append(os.Environ(), st.env...), roleVariable+"="+role)
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

// peer is a program that somebody else made.
type peer struct {
	name    string
	config  string // its file in configs
	command []string
}

// peer writes a configuration, starts a program with it and waits until it listens.
// The address is empty for one that is not wanted, or not installed where not
// everything is measured. replace are words of the configuration with what stands for
// them.
func (st *stage) peer(ctx context.Context, p peer, replace ...string) (addr string, pid int, err error) {
	if !st.measures(p.name) && p.name != "nginx" { // which helps others
		return "", 0, nil
	}
	if _, err := exec.LookPath(p.command[0]); err != nil {
		fmt.Fprintf(os.Stderr, "%s is left out: %v\n", p.name, err)
		return "", 0, nil
	}
	if addr, err = freeAddress(); err != nil {
		return "", 0, err
	}
	file, err := st.configure(p.config, append(replace, "HOST", host, "PORT", port(addr))...)
	if err != nil {
		return "", 0, err
	}
	cmd := exec.CommandContext(ctx, p.command[0], append(p.command[1:], file)...)
	pid, err = st.background(ctx, cmd, file+".log")
	if err != nil {
		return "", 0, err
	}
	return addr, pid, st.listens(ctx, addr, file+".log")
}

// configure writes a file of configs for this stage.
func (st *stage) configure(name string, replace ...string) (file string, err error) {
	text, err := configs.ReadFile("configs/" + name)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(st.dir, "*-"+name)
	if err != nil {
		return "", err
	}
	_, err = strings.NewReplacer(append(replace, "DIR", st.dir)...).WriteString(f, string(text))
	return f.Name(), errors.Join(err, f.Close())
}

// background starts a program that prints to a file.
func (st *stage) background(ctx context.Context, cmd *exec.Cmd, log string) (pid int, err error) {
	return st.backgroundIn(ctx, cmd, log, append(os.Environ(), "HOME="+st.dir, "XDG_DATA_HOME="+st.dir, "XDG_CONFIG_HOME="+st.dir))
}

func (st *stage) backgroundIn(ctx context.Context, cmd *exec.Cmd, log string, env []string) (pid int, err error) {
	cmd.Env = env
	f, err := os.Create(log)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := st.start(ctx, cmd); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// listens waits until somebody takes connections at addr.
func (st *stage) listens(ctx context.Context, addr, log string) error {
	for range 200 {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	said, err := os.ReadFile(log)
	return errors.Join(fmt.Errorf("nobody listens: %s", bytes.TrimSpace(said)), err)
}

// freeAddress is one for a program that cannot be told to choose a port itself:
// free now, and its own from now on.
func freeAddress() (string, error) {
	port, giveBack, err := programs.Port()
	if err != nil {
		return "", err
	}
	giveBack() // the system gives it to nobody
	return fmt.Sprintf("127.0.0.1:%d", port), nil
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// writeCertificate makes the one certificate everybody serves: ECDSA P-256,
// like those of our own authority.
func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host, authHost},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
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

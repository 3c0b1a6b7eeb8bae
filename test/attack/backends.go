//go:build linux

package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"porchlight/test/programs"
)

//go:embed apps
var apps embed.FS

// backend is an app in one of the four languages. Between it and the agent is a
// tap, which keeps every byte the agent sends.
type backend struct {
	name    string
	process *programs.Process
	log     string // what the app understood
	tap     *tap
	host    string // its public one, with port
	cookie  string // of the person who attacks
}

var backendNames = []string{"go", "node", "python", "php"}

// startWithNotes starts a computer with one app, called notes.
func (s *stage) startWithNotes(ctx context.Context) (*computer, *backend, error) {
	c, err := s.startComputer(ctx, s.dir+"/data")
	if err != nil {
		return nil, nil, err
	}
	b, err := s.startBackend(ctx, "go")
	if err != nil {
		return nil, nil, err
	}
	b.host, err = c.publish(ctx, "notes", "Notes", b.tap.port())
	return c, b, err
}

// ground is a computer with the four apps, and what each of them is attacked with.
type ground struct {
	*computer
	backends []*backend

	mu     sync.Mutex // protects trials
	trials []*trial
}

func (s *stage) startGround(ctx context.Context) (*ground, error) {
	c, err := s.startComputer(ctx, s.dir+"/data")
	if err != nil {
		return nil, err
	}
	backends, who, err := s.startBackends(ctx, c)
	if err != nil {
		return nil, err
	}
	on := &ground{computer: c, backends: backends}
	for range backends {
		on.trials = append(on.trials, newTrial(who, mark))
	}
	return on, nil
}

// startBackends runs the four apps, publishes them and signs a member in.
func (s *stage) startBackends(ctx context.Context, c *computer) (backends []*backend, who identity, err error) {
	var labels []string
	for _, name := range backendNames {
		b, err := s.startBackend(ctx, name)
		if err != nil {
			return nil, who, fmt.Errorf("the app in %s: %w", name, err)
		}
		label := "App " + name
		if b.host, err = c.publish(ctx, name, label, b.tap.port()); err != nil {
			return nil, who, err
		}
		labels = append(labels, label)
		backends = append(backends, b)
	}
	browser, person, err := c.invite(ctx, memberEmail, labels...)
	if err != nil {
		return nil, who, err
	}
	defer browser.Close()
	for _, b := range backends {
		if b.cookie, err = cookieOf(ctx, browser, b.host); err != nil {
			return nil, who, err
		}
	}
	return backends, identity{user: person.AccountID, email: memberEmail, name: c.account.Name, role: "member"}, nil
}

func (s *stage) startBackend(ctx context.Context, name string) (*backend, error) {
	b := &backend{name: name, log: filepath.Join(s.dir, name+".log")}
	script := filepath.Join(s.dir, "app")
	run := func(env []string, program string, args ...string) (port int, err error) {
		p, line, err := s.start(ctx, env, program, args...)
		if err != nil {
			return 0, err
		}
		b.process = p
		return strconv.Atoi(strings.TrimSpace(line))
	}
	var port int
	var err error
	switch name {
	case "go":
		self, err2 := os.Executable()
		if err2 != nil {
			return nil, err2
		}
		port, err = run([]string{roleVariable + "=go"}, self, b.log)
	case "node":
		if err = write(script+".js", "apps/app.js"); err == nil {
			port, err = run(nil, "node", script+".js", b.log)
		}
	case "python":
		if err = write(script+".py", "apps/app.py"); err == nil {
			port, err = run(nil, "python3", script+".py", b.log)
		}
	case "php":
		if err = write(script+".php", "apps/app.php"); err == nil {
			b.process, port, err = s.startPHP(ctx, script+".php", b.log)
		}
	}
	if err != nil {
		return nil, err
	}
	b.tap, err = startTap(port)
	return b, err
}

// startPHP runs PHP's own server, which cannot be told to choose a port.
func (s *stage) startPHP(ctx context.Context, script, log string) (*programs.Process, int, error) {
	port, giveBack, err := programs.Port()
	if err != nil {
		return nil, 0, err
	}
	defer giveBack() // it listens by then
	// It says where it listens on standard error, so a shell joins the two.
	p, line, err := s.start(ctx, []string{"ATTACK_LOG=" + log}, "sh", "-c",
		fmt.Sprintf(`exec php -d display_errors=0 -S 127.0.0.1:%d %s 2>&1`, port, script))
	if err == nil && !strings.Contains(line, "started") {
		err = fmt.Errorf("it said %q", line)
	}
	return p, port, err
}

func write(to, embedded string) error {
	raw, err := apps.ReadFile(embedded)
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, 0o600)
}

// understood is everything the app wrote down. It ends the app and the tap, so
// that nothing can come any more.
func (b *backend) understood() ([]seen, error) {
	b.tap.close()
	b.process.Stop()
	f, err := os.Open(b.log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []seen
	d := json.NewDecoder(f)
	for {
		var one seen
		err := d.Decode(&one)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("what the app in %s wrote down: %w", b.name, err)
		}
		all = append(all, one)
	}
}

// tap passes connections on and keeps what is sent to the app.
type tap struct {
	ln   net.Listener
	to   int // port of the app
	done sync.WaitGroup

	mu    sync.Mutex // protects what follows
	sent  []*[]byte  // of each connection
	conns map[net.Conn]bool
}

func startTap(to int) (*tap, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &tap{ln: ln, to: to, conns: map[net.Conn]bool{}}
	t.done.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			t.done.Go(func() { t.pass(c) })
		}
	})
	return t, nil
}

func (t *tap) port() int { return t.ln.Addr().(*net.TCPAddr).Port }

func (t *tap) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(t.to))
	if err != nil {
		return
	}
	defer to.Close()
	kept := new([]byte)
	t.mu.Lock()
	t.sent = append(t.sent, kept)
	t.conns[from], t.conns[to] = true, true
	t.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(from, to); from.Close() }) // an end is an end
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		t.mu.Lock()
		*kept = append(*kept, buf[:n]...)
		t.mu.Unlock()
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			break
		}
	}
	to.Close()
	back.Wait()
	t.mu.Lock()
	delete(t.conns, from)
	delete(t.conns, to)
	t.mu.Unlock()
}

// close ends every connection and returns when nothing is written any more.
func (t *tap) close() {
	t.ln.Close()
	t.mu.Lock()
	for c := range t.conns {
		c.Close()
	}
	t.mu.Unlock()
	t.done.Wait()
}

// messages are the requests the agent sent, by connection; call it after close.
func (t *tap) messages() (all []wire) {
	for _, kept := range t.sent {
		all = append(all, split(*kept)...)
	}
	return all
}

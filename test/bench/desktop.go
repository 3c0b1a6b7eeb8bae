package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The contenders of the desktop's part: the menu bar, and what of it has no screen.
const (
	menuBar   = "Porchlight, menu bar"
	noScreen  = "Porchlight, agent without a screen"
	starting  = "from its start until it answers"
	untilThen = "CPU ms"
	millis    = "ms"
)

func desktopPart() part {
	both := []string{menuBar, noScreen}
	return part{name: "desktop", start: (*stage).startDesktopPart, work: []work{
		{"start", starting, both, starts},
		{"memory", atStart, both, totalMemory},
	}}
}

// startDesktopPart has a screen and a session bus that nobody else uses.
func (st *stage) startDesktopPart(ctx context.Context) error {
	programs := map[string]string{menuBar: "porchlight-desktop", noScreen: "porchlight"}
	for _, needed := range []string{"Xvfb", "dbus-daemon"} {
		if _, err := exec.LookPath(needed); err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", menuBar, err)
			delete(programs, menuBar)
		}
	}
	env, err := st.session(ctx, programs[menuBar] != "")
	if err != nil {
		return err
	}
	for _, name := range []string{menuBar, noScreen} {
		program := filepath.Join(st.programs, programs[name])
		if programs[name] == "" {
			continue
		}
		if !isFile(program) {
			fmt.Fprintf(os.Stderr, "%s is left out: there is no %s (make build)\n", name, program)
			continue
		}
		c, err := st.startProgram(ctx, name, program, env)
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		st.stand(c)
	}
	return nil
}

// session starts a screen and a bus, where they are wanted, and returns an environment
// in which nothing of this user's is touched.
func (st *stage) session(ctx context.Context, screen bool) (env []string, err error) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "PORCHLIGHT_DATA", "PORCHLIGHT_API":
		default:
			env = append(env, v)
		}
	}
	home := filepath.Join(st.dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	env = append(env, "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR="+home)
	if !screen {
		return env, nil
	}
	bus, display := filepath.Join(st.dir, "bus"), filepath.Join(st.dir, "display")
	config, err := st.configure("bus.conf")
	if err != nil {
		return nil, err
	}
	if _, err := st.background(ctx, exec.CommandContext(ctx, "dbus-daemon", "--nofork", "--config-file="+config), bus+".log"); err != nil {
		return nil, err
	}
	f, err := os.Create(display)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	xvfb := exec.CommandContext(ctx, "Xvfb", "-displayfd", "3", "-screen", "0", "1280x800x24")
	xvfb.ExtraFiles = []*os.File{f}
	if _, err := st.background(ctx, xvfb, display+".log"); err != nil {
		return nil, err
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		number, err := os.ReadFile(display)
		if err != nil {
			return nil, err
		}
		conn, err := net.Dial("unix", bus)
		if err == nil {
			conn.Close()
		}
		if err == nil && strings.HasSuffix(string(number), "\n") {
			return append(env, "DISPLAY=:"+strings.TrimSpace(string(number)), "DBUS_SESSION_BUS_ADDRESS=unix:path="+bus), nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return nil, errors.New("no screen and bus came up")
		}
	}
}

// startProgram starts one of ours and waits until its loopback API answers.
func (st *stage) startProgram(ctx context.Context, name, program string, env []string) (contender, error) {
	api, err := freeAddress()
	if err != nil {
		return contender{}, err
	}
	data := filepath.Join(st.dir, "data-"+port(api))
	args := []string{"--data", data, "--api", api, "--https", "127.0.0.1:0"}
	if name == menuBar {
		args = append([]string{"--hidden", "--secret-file"}, args...)
	} else {
		args = append([]string{"agent", "--local"}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	log := data + ".log"
	began := time.Now()
	pid, err := st.backgroundIn(ctx, cmd, log, env)
	if err != nil {
		return contender{}, err
	}
	c := contender{name: name, addr: api, pid: pid}
	for end := began.Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		res, err := http.Get("http://" + api + "/status")
		if err != nil {
			continue
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			continue
		}
		c.took = time.Since(began)
		if c.used, err = c.cpu(); err != nil {
			return c, err
		}
		time.Sleep(st.span) // what it does afterwards belongs to what it keeps
		return c, nil
	}
	said, err := os.ReadFile(log)
	return c, errors.Join(fmt.Errorf("it does not answer: %s", said), err)
}

// starts is how long a contender took to answer, and what it used until then.
func starts(_ context.Context, _ *stage, c contender) ([]reading, error) {
	return []reading{{millis, micro(c.took) / 1e3}, {untilThen, micro(c.used) / 1e3}}, nil
}

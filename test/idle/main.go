//go:build linux

// Command idle prints how often an agent wakes up while nobody does anything, and what
// it keeps in memory: one that runs alone and is connected to a control plane on this
// computer, at first with no visitor, then with a hundred who keep their connections, then
// with one more who has something open. It judges nothing: a busy machine counts more. build/wakeups.sh runs it after the menu bar.
//
//	go run ./test/idle [SECONDS [flags of porchlight agent]]
package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

const (
	visitors = 100
	owner    = "maya@example.net"
	quiet    = 20 * time.Second // until what was just done is over: the agent beats every second for 15 s more
)

func main() {
	seconds, flags := 60, []string(nil)
	if len(os.Args) > 1 {
		var err error
		if seconds, err = strconv.Atoi(os.Args[1]); err != nil || seconds < 1 {
			fmt.Fprintf(os.Stderr, "idle: %q is no number of seconds\n", os.Args[1])
			os.Exit(2)
		}
		flags = os.Args[2:]
	}
	if err := run(context.Background(), time.Duration(seconds)*time.Second, flags); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, during time.Duration, flags []string) error {
	dir, err := os.MkdirTemp("", "idle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w := &world{dir: dir}
	if err := os.Setenv("XDG_CONFIG_HOME", w.path("config")); err != nil { // where secrets are
		return err
	}
	defer w.end()
	if err := w.connect(ctx, flags); err != nil {
		return err
	}
	cookies, err := w.openApp(ctx)
	if err != nil {
		return err
	}
	if err := w.count("agent alone, connected", during); err != nil {
		return err
	}
	for range visitors {
		browser := visitor.New(w.roots)
		defer browser.Close()
		browser.SetCookies(w.app, cookies)
		if page, err := browser.Open(ctx, w.app.String()); err != nil || page.Status != http.StatusOK {
			return fmt.Errorf("a visitor does not get in: %v %w", page, err)
		}
	}
	if err := w.count(fmt.Sprintf("the same, %d idle visitors", visitors), during); err != nil {
		return err
	}
	browser := visitor.New(w.roots)
	defer browser.Close()
	browser.SetCookies(w.app, cookies)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.app.JoinPath("stream").String(), nil)
	if err != nil {
		return err
	}
	stream, err := browser.Do(req)
	if err != nil {
		return err
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		return fmt.Errorf("the stream is answered with HTTP %d", stream.StatusCode)
	}
	return w.count("the same, one more has a stream open", during)
}

// world is a control plane, an agent that is connected to it, and an app.
type world struct {
	rig.Rig
	dir     string
	control *rig.Node
	agent   *rig.Computer
	running []*programs.Process
	backend *httptest.Server
	mails   *rig.Mails
	roots   *x509.CertPool
	app     *url.URL
}

func (w *world) end() {
	for _, p := range slices.Backward(w.running) {
		p.Stop()
	}
	if w.backend != nil {
		w.backend.Close()
	}
	if w.Bin != "" {
		_ = os.RemoveAll(w.Bin)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// connect starts control plane and agent, and connects the one to the other.
func (w *world) connect(ctx context.Context, flags []string) (err error) {
	if w.Bin, err = programs.Build("porchlight/agent/cmd/porchlight", "porchlight/control/cmd/porchlight-control"); err != nil {
		return err
	}
	w.Begin = func(cmd *exec.Cmd) (*programs.Process, error) {
		p, err := programs.Start(cmd)
		if err == nil {
			w.running = append(w.running, p)
		}
		return p, err
	}
	if w.control, err = w.Node(ctx, w.path("control"), "--outbox", w.path("mails")); err != nil {
		return err
	}
	w.mails = rig.MailsIn(w.path("mails"))
	if err := w.control.Run(nil, "account", "add", owner); err != nil {
		return err
	}
	authority := rig.Authority(w.control.Data)
	flags = append([]string{"--control", w.control.AuthURL, "--ca", authority}, flags...)
	if w.agent, err = w.Computer(ctx, w.path("data"), flags...); err != nil {
		return err
	}
	_, api, err := w.agent.Clients(ctx)
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	waiting, err := api.Connect(ctx, agentapi.ConnectRequest{URL: w.control.AuthURL, CA: string(pem)})
	if err != nil {
		return err
	}
	if w.roots, err = rig.Roots(authority); err != nil {
		return err
	}
	browser := visitor.New(w.roots)
	defer browser.Close()
	answers := map[string]string{"name": "maya", "decision": "allow"}
	page, err := browser.Confirm(ctx, waiting.VerificationURLComplete, waiting.UserCode, owner, answers, w.mails)
	if err == nil && page.Status != http.StatusOK {
		err = fmt.Errorf("confirming ends with HTTP %d", page.Status)
	}
	return err
}

// openApp publishes an app and signs its owner in; it returns the session's cookies.
func (w *world) openApp(ctx context.Context) ([]*http.Cookie, error) {
	w.backend = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, "here")
		if r.URL.Path == "/stream" {
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		}
	}))
	port := w.backend.URL[strings.LastIndexByte(w.backend.URL, ':')+1:]
	for _, args := range [][]string{{"publish", "notes", "--label", "Notes", "--port", port}, {"approve", "notes"}} {
		for tries := 0; ; tries++ { // connecting is under way
			if err := w.agent.Run(nil, args...); err == nil {
				break
			} else if tries > 100 {
				return nil, err
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	auth, err := url.Parse(w.control.AuthURL)
	if err != nil {
		return nil, err
	}
	w.app = &url.URL{Scheme: "https", Host: "notes.maya.porch.localhost:" + auth.Port(), Path: "/"}
	for range 100 {
		if roots, err := rig.Roots(rig.Authority(w.control.Data), rig.Own(w.agent.Data)); err == nil {
			w.roots = roots
		}
		browser := visitor.New(w.roots)
		defer browser.Close()
		page, err := browser.SignIn(ctx, w.app.String(), owner, w.mails)
		if err == nil && page.Status == http.StatusOK {
			return browser.Cookies(w.app), nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, errors.New("the app does not open")
}

var (
	switches = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:\s+(\d+)`)
	private  = regexp.MustCompile(`(?m)^Private_Dirty:\s+(\d+) kB`)
)

// count prints one row about the agent.
func (w *world) count(what string, during time.Duration) error {
	time.Sleep(quiet)
	before := w.switches()
	time.Sleep(during)
	n := w.switches() - before
	syscall.Sync() // or a program that was just built counts, dirty in the page cache
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", w.agent.PID()))
	if err != nil {
		return err
	}
	kb, _ := strconv.Atoi(string(private.FindSubmatch(rollup)[1]))
	fmt.Printf("%-34s %7.1f %12.1f\n", what, float64(n)/during.Seconds(), float64(kb)/1024)
	return nil
}

// switches are the voluntary context switches of all threads of the agent.
func (w *world) switches() (all int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", w.agent.PID()))
	for _, file := range files {
		if status, err := os.ReadFile(file); err == nil {
			n, _ := strconv.Atoi(string(switches.FindSubmatch(status)[1]))
			all += n
		}
	}
	return all
}

// Command demo plays Porchlight's main job by itself, with the real programs: a
// sample app asks for an address, the owner approves it, a visitor signs in by a
// mailed link, and the app shows which identity headers it received.
//
// usage: demo PATH-OF-PORCHLIGHT
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) != 1 {
		return errors.New("say where porchlight is, for example: demo bin/porchlight")
	}
	dir, err := os.MkdirTemp("", "porchlight-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &demo{}

	appPort, stopApp, err := sampleApp()
	if err != nil {
		return err
	}
	defer stopApp()
	step("A sample app listens on 127.0.0.1:%d. It answers with the identity headers it receives.", appPort)

	stopAgent, err := d.startAgent(ctx, args[0], dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopAgent()) }()

	step("The app asks for an address.")
	if err := d.shown("publish", "sample", "--label", "Sample app", "--port", strconv.Itoa(appPort)); err != nil {
		return err
	}
	step("The owner says yes.")
	if err := d.shown("approve", "sample"); err != nil {
		return err
	}
	return d.visit(ctx)
}

// visit is the story from the browser's side.
func (d *demo) visit(ctx context.Context) error {
	var account agentapi.Account
	if err := d.Run(&account, "account"); err != nil {
		return err
	}
	roots, err := rig.Roots(rig.Authority(d.Data))
	if err != nil {
		return err
	}
	browser := visitor.New(roots)
	defer browser.Close()

	address := "https://sample." + account.Host
	step("A browser without a session opens %s", address)
	page, err := browser.Open(ctx, address)
	if err != nil {
		return err
	}
	say("It is sent to sign in, at https://%s%s", page.URL.Host, page.URL.Path)

	step("It asks for a link to be mailed to %s, and clicks it.", account.Email)
	page, err = browser.SignIn(ctx, address, account.Email, d.Outbox())
	if err != nil {
		return err
	}
	if page.Status != http.StatusOK {
		return fmt.Errorf("the app's address answered HTTP %d", page.Status)
	}
	step("The app answers through relay, tunnel and agent. It received:")
	say("%s", strings.TrimSpace(page.Body))
	if n := strings.Count(page.Body, "X-Service-"); n != 5 {
		return fmt.Errorf("the app received %d identity headers instead of five", n)
	}

	step("The owner revokes the app; the same browser comes again.")
	if err := d.shown("revoke", "sample"); err != nil {
		return err
	}
	if page, err = browser.Open(ctx, address); err != nil {
		return err
	}
	say("HTTP %d", page.Status)
	if page.Status == http.StatusOK {
		return errors.New("the revoked app is still reachable")
	}
	step("That is all. Everything it made is removed again.")
	return nil
}

type demo struct{ *rig.Computer }

// startAgent runs the agent on free ports and waits until it says it is on.
func (d *demo) startAgent(ctx context.Context, program, dir string) (stop func() error, err error) {
	r := &rig.Rig{Bin: filepath.Dir(program), Env: rig.Environ(filepath.Join(dir, "config")), Begin: programs.Start}
	step("porchlight agent --local")
	if d.Computer, err = r.Computer(ctx, filepath.Join(dir, "data"), "--local"); err != nil {
		return nil, err
	}
	said, _, _ := strings.Cut(d.Stdout(), "\n")
	say("%s", said)
	return func() error {
		if code := d.Stop(); code != 0 {
			return fmt.Errorf("the agent ended with %d: %s", code, d.Stderr())
		}
		return nil
	}, nil
}

// shown runs a command and prints it with its output.
func (d *demo) shown(args ...string) error {
	quoted := make([]string, len(args))
	for i, a := range args {
		if quoted[i] = a; strings.Contains(a, " ") {
			quoted[i] = strconv.Quote(a)
		}
	}
	say("$ porchlight %s", strings.Join(quoted, " "))
	out, err := d.Output(args...)
	say("%s", strings.TrimSpace(out))
	return err
}

// sampleApp answers every request with the identity headers it came with.
func sampleApp() (port int, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			for _, name := range []string{"X-Service-User", "X-Service-Email", "X-Service-Name", "X-Service-App", "X-Service-Role"} {
				if v := r.Header.Get(name); v != "" {
					fmt.Fprintf(w, "%s: %s\n", name, v)
				}
			}
		}),
	}
	go server.Serve(l)
	return l.Addr().(*net.TCPAddr).Port, func() { server.Close() }, nil
}

var steps int

func step(format string, args ...any) {
	steps++
	fmt.Printf("\n%d. %s\n", steps, fmt.Sprintf(format, args...))
}

func say(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Println("   " + strings.TrimRight(line, "\n"))
	}
}

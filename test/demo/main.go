// Command demo plays Porchlight's main job by itself, with the real programs: a
// sample app asks for an address, the owner approves it, a visitor signs in by a
// mailed link, and the app shows which identity headers it received.
//
// usage: demo PATH-OF-PORCHLIGHT
package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"porchlight/agent/agentapi"
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
	d := &demo{program: args[0], data: filepath.Join(dir, "data")}

	appPort, stopApp, err := sampleApp()
	if err != nil {
		return err
	}
	defer stopApp()
	step("A sample app listens on 127.0.0.1:%d. It answers with the identity headers it receives.", appPort)

	stopAgent, err := d.startAgent(ctx, filepath.Join(dir, "config"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopAgent()) }()

	step("The app asks for an address.")
	if err := d.shown(ctx, "publish", "sample", "--label", "Sample app", "--port", strconv.Itoa(appPort)); err != nil {
		return err
	}
	step("The owner says yes.")
	if err := d.shown(ctx, "approve", "sample"); err != nil {
		return err
	}
	return d.visit(ctx)
}

// visit is the story from the browser's side.
func (d *demo) visit(ctx context.Context) error {
	var account agentapi.Account
	if err := d.asJSON(ctx, &account, "account"); err != nil {
		return err
	}
	pem, err := os.ReadFile(filepath.Join(d.data, "ca", "root.pem"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return errors.New("the root certificate cannot be read")
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
	page, err = browser.SignIn(ctx, address, account.Email, func(ctx context.Context) (string, error) { return d.mailedLink(ctx) })
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
	if err := d.shown(ctx, "revoke", "sample"); err != nil {
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

type demo struct {
	program string
	data    string
	env     []string
}

// startAgent runs the agent on free ports and waits until it says it is on.
func (d *demo) startAgent(ctx context.Context, config string) (stop func() error, err error) {
	d.env = append(os.Environ(), "XDG_CONFIG_HOME="+config, "PORCHLIGHT_DATA="+d.data, "PORCHLIGHT_API=")
	step("porchlight agent --local")
	cmd := exec.CommandContext(ctx, d.program, "agent", "--local", "--api", "127.0.0.1:0", "--https", "127.0.0.1:0")
	cmd.Env, cmd.Stderr = d.env, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		return nil, errors.Join(errors.New("the agent did not start"), cmd.Wait())
	}
	say("%s", lines.Text())
	go io.Copy(io.Discard, out) // the rest says what to type next
	return func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		return cmd.Wait()
	}, nil
}

// shown runs a command and prints it with its output.
func (d *demo) shown(ctx context.Context, args ...string) error {
	quoted := make([]string, len(args))
	for i, a := range args {
		if quoted[i] = a; strings.Contains(a, " ") {
			quoted[i] = strconv.Quote(a)
		}
	}
	say("$ porchlight %s", strings.Join(quoted, " "))
	out, err := d.command(ctx, args...).Output()
	say("%s", strings.TrimSpace(string(out)))
	return explain(err)
}

func (d *demo) asJSON(ctx context.Context, into any, args ...string) error {
	out, err := d.command(ctx, append(args, "--json")...).Output()
	if err != nil {
		return explain(err)
	}
	return json.Unmarshal(out, into)
}

func (d *demo) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.program, args...)
	cmd.Env = d.env
	return cmd
}

// mailedLink waits for the sign-in mail in the outbox.
func (d *demo) mailedLink(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		var mails []agentapi.Mail
		if err := d.asJSON(ctx, &mails, "outbox"); err != nil {
			return "", err
		}
		if len(mails) > 0 && len(mails[0].Links) > 0 {
			say("The mail %q is in the outbox.", mails[0].Subject)
			return mails[0].Links[0], nil
		}
		select {
		case <-ctx.Done():
			return "", errors.New("no mail came")
		case <-time.After(100 * time.Millisecond):
		}
	}
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

// explain adds what a command printed to its error.
func explain(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return err
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

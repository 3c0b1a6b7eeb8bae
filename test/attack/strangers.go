//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

const nobody = 65534 // the uid

// order is what the program of the other user is told to do: call the loopback
// API, or with Listen to serve visitors on a port.
type order struct {
	Method, URL string
	Fields      map[string]string
	Body        string
	Listen      int
}

type orderDone struct {
	Status int
	Body   string
	Error  string
}

const strangersPage = "this is the other user's program"

// playStranger is that program. It takes orders, one on each line.
func playStranger() {
	orders, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	fmt.Println("ready")
	for {
		var o order
		if orders.Decode(&o) != nil {
			return
		}
		var done orderDone
		if err := o.carryOut(&done); err != nil {
			done.Error = err.Error()
		}
		if out.Encode(done) != nil {
			return
		}
	}
}

func (o order) carryOut(done *orderDone) error {
	if o.Listen != 0 {
		ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(o.Listen))
		if err == nil {
			go func() {
				_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strangersPage) })) // until we end
			}()
		}
		return err
	}
	req, err := http.NewRequest(o.Method, o.URL, strings.NewReader(o.Body))
	if err != nil {
		return err
	}
	for name, value := range o.Fields {
		req.Header.Set(name, value)
	}
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	done.Status, done.Body = resp.StatusCode, string(body)
	return err
}

// stranger is the running program of another user.
type stranger struct {
	in  io.Writer
	out *bufio.Reader
}

// startStranger runs this program once more, as nobody.
func (s *stage) startStranger(ctx context.Context) (*stranger, error) {
	dir := filepath.Join(s.dir, "open")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(s.dir, 0o711)); err != nil { // nobody has to get at the program
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(self)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "stranger")
	if err := os.WriteFile(program, raw, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = []string{roleVariable + "=stranger"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p, err := programs.Start(cmd)
	if err != nil {
		return nil, err
	}
	r := &stranger{in: in, out: bufio.NewReader(out)}
	s.mu.Lock()
	s.started = append(s.started, p)
	s.mu.Unlock()
	if _, err := r.out.ReadString('\n'); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *stranger) do(o order) (done orderDone, err error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return done, err
	}
	if _, err := r.in.Write(append(raw, '\n')); err != nil {
		return done, err
	}
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		return done, err
	}
	if err := json.Unmarshal(line, &done); err != nil {
		return done, err
	}
	if done.Error != "" {
		err = errors.New(done.Error)
	}
	return done, err
}

// attackStrangers makes every call as another user of the computer, and binds the
// port of an app that ended. Only a new name may be asked for.
func attackStrangers(ctx context.Context, s *stage, t *tally) error {
	if os.Getuid() != 0 {
		t.skip("only root can run a program as another user")
		return nil
	}
	c, b, err := s.startWithNotes(ctx)
	if err != nil {
		return err
	}
	if b.cookie, err = c.ownersCookie(ctx, "notes", b.host); err != nil {
		return err
	}
	if _, err := c.open.Publish(ctx, agentapi.PublishRequest{Name: "waiting", Label: "Waiting", LocalPort: 10}); err != nil {
		return err
	}
	if _, err := c.open.Register(ctx, agentapi.RegisterRequest{AppID: "org.example.own", PID: os.Getpid()}); err != nil {
		return err
	}
	before, err := c.owner.State(ctx)
	if err != nil {
		return err
	}
	nobody, err := s.startStranger(ctx)
	if err != nil {
		return err
	}
	if err := c.callAsStranger(nobody, t); err != nil {
		return err
	}
	after, err := c.owner.State(ctx)
	if err != nil {
		return err
	}
	for _, app := range before.Apps {
		if !hasUnchanged(after.Apps, app) {
			t.got("%s is not as it was", app.Name)
		}
	}
	if len(after.Registrants) != len(before.Registrants) || after.PeopleCount != before.PeopleCount {
		t.got("registrants %v, people %d", after.Registrants, after.PeopleCount)
	}
	return c.inherit(ctx, s, b, nobody, t)
}

func hasUnchanged(apps []agentapi.OwnerApp, app agentapi.OwnerApp) bool {
	for _, now := range apps {
		if now.Name == app.Name {
			return now.LocalPort == app.LocalPort && now.Label == app.Label && now.Status == app.Status
		}
	}
	return false
}

// callAsStranger makes the calls, plain and with what might impress the agent.
func (c *computer) callAsStranger(nobody *stranger, t *tally) error {
	guises := []map[string]string{
		nil,
		{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-User": "root", "X-Remote-User": "root"},
		{agentapi.HeaderCapability: strings.Repeat("A", 43), agentapi.HeaderOwnerSecret: strings.Repeat("A", 43)},
		{agentapi.HeaderCapability: "", agentapi.HeaderOwnerSecret: ""},
	}
	calls := strangersCalls()
	fmt.Printf("   calls %d × guises %d = %d\n", len(calls), len(guises), len(calls)*len(guises))
	for _, guise := range guises {
		for _, call := range calls {
			fields := map[string]string{"Content-Type": "application/json"}
			for name, value := range guise {
				fields[name] = value
			}
			done, err := nobody.do(order{Method: call.method, URL: "http://" + c.Running.API + call.path, Fields: fields, Body: call.body})
			if err != nil {
				return err
			}
			t.try(1)
			right := done.Status == http.StatusTooManyRequests // paced
			for _, want := range call.want {
				right = right || done.Status == want
			}
			if !right {
				t.got("as nobody, %s %s %s: %d, not %v: %.120s", call.method, call.path, call.body, done.Status, call.want, strings.TrimSpace(done.Body))
			}
		}
	}
	return nil
}

// inherit has the other user listen where the app did, and the owner visit.
func (c *computer) inherit(ctx context.Context, s *stage, b *backend, nobody *stranger, t *tally) error {
	port := b.tap.port()
	b.tap.close()
	if _, err := nobody.do(order{Listen: port}); err != nil {
		return err
	}
	const visits = 20
	fmt.Printf("   visits to a port that another user took %d\n", visits)
	for i := range visits {
		got, err := c.exchange(ctx, b.host, fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nConnection: close\r\n\r\n", i, b.host, b.cookie))
		if err != nil {
			return err
		}
		t.try(1)
		if len(got) > 0 && got[0].body == strangersPage {
			t.got("visit %d reached the other user's program", i)
		}
	}
	return nil
}

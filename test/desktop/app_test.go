//go:build rig

package desktop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"porchlight/test/programs"
	"porchlight/test/rig"
)

// program is the app under test, running in a session.
type program struct {
	*session
	process *programs.Process // nil where WebKitWebDriver started it
	pid     int
	args    []string
	data    string
	api     string // host:port
	started time.Time
	secret  string     // the owner's, once ownerTier asked for it
	plane   *plane     // once the computer is connected to one
	mails   *rig.Mails // those it sent, once a test asked for one
}

func binary(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("PORCHLIGHT_DESKTOP"); p != "" {
		return p
	}
	return programs.Got(filepath.Abs("../../bin/porchlight-desktop"))(t)
}

// cli is the command line.
func cli(t *testing.T) string {
	t.Helper()
	return programs.Got(filepath.Abs("../../bin/porchlight"))(t)
}

// launch starts the app and waits until it serves.
func (s *session) launch(args ...string) *program {
	s.t.Helper()
	p := s.begin(args...)
	p.serving()
	return p
}

// used has the app started before, by an owner who was welcomed and asked for trust; not
// in a session that is the first.
func (s *session) used(data string) {
	s.t.Helper()
	file := filepath.Join(data, "desktop.json")
	if _, err := os.Stat(file); s.opts.first || err == nil {
		return
	}
	programs.Must(s.t, os.MkdirAll(data, 0o700))
	s.write(file, `{"welcomed": true, "trustOffered": true}`)
}

// begin starts the app; it does not wait for anything.
func (s *session) begin(args ...string) *program {
	s.t.Helper()
	p := &program{session: s, data: filepath.Join(s.dir, "data"), api: programs.FreeAddress(s.t)}
	s.used(p.data)
	p.start(append([]string{"--data", p.data, "--api", p.api, "--https", programs.FreeAddress(s.t)}, args...)...)
	return p
}

func (p *program) start(args ...string) {
	p.t.Helper()
	log := programs.Got(os.OpenFile(filepath.Join(p.dir, "app.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(p.t)
	defer log.Close()
	cmd := exec.Command(binary(p.t), args...)
	cmd.Env, cmd.Stderr = p.env, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.args, p.started = args, time.Now()
	p.process = programs.Begin(p.t, cmd)
	p.pid = p.process.PID()
	p.logged()
}

// logged shows what the app said when the test fails.
func (s *session) logged() {
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the app said:\n%s", s.appLog())
		}
	})
}

// restart starts the app anew, which has ended, and waits until it serves.
func (p *program) restart(more ...string) {
	p.t.Helper()
	p.start(append(p.args, more...)...)
	p.serving()
}

// again starts the app once more on the same data: it says nothing and ends,
// because one runs.
func (p *program) again(args ...string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(p.t), append([]string{"--data", p.data, "--api", p.api}, args...)...)
	cmd.Env = p.env
	if said, err := cmd.CombinedOutput(); err != nil || len(said) != 0 {
		p.t.Fatalf("second start: %v, %q", err, said)
	}
}

// signal sends the app one.
func (p *program) signal(which syscall.Signal) {
	p.t.Helper()
	programs.Must(p.t, syscall.Kill(p.pid, which))
}

// quit ends the app by its menu.
func (p *program) quit() {
	p.t.Helper()
	p.trayClick("Quit Porchlight")
	p.ends(0)
}

// ends waits until the app has ended, and checks with which code.
func (p *program) ends(want int) {
	p.t.Helper()
	if code := p.process.Wait(); code != want {
		p.t.Errorf("the app ended with %d, want %d", code, want)
	}
}

func (s *session) appLog() string {
	raw, _ := os.ReadFile(filepath.Join(s.dir, "app.log"))
	return string(raw)
}

// call asks the loopback API.
func (p *program) call(method, path string, body any) (status int, answer map[string]any, err error) {
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		payload = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, "http://"+p.api+path, payload)
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err
	}
	_ = json.Unmarshal(raw, &answer)
	return resp.StatusCode, answer, nil
}

// serving waits until the loopback API answers.
func (p *program) serving() {
	p.t.Helper()
	p.eventually("the loopback API answers", func() error {
		status, _, err := p.call("GET", "/status", nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
}

// publish asks for an address, as an app does.
func (p *program) publish(name, label string, port int) {
	p.t.Helper()
	status, answer, err := p.call("POST", "/publish", map[string]any{"name": name, "label": label, "localPort": port})
	if err != nil || (status != http.StatusAccepted && status != http.StatusOK) {
		p.t.Fatalf("publish %s: %d %v %v", name, status, answer, err)
	}
}

// is waits until the app has the status; "" is 404.
func (p *program) is(name, want string) {
	p.t.Helper()
	p.eventually(name+" is "+want, func() error {
		status, answer, err := p.call("GET", "/publish/"+name, nil)
		if err != nil {
			return err
		}
		got, _ := answer["status"].(string)
		if status == http.StatusNotFound {
			got = ""
		}
		if got != want {
			return fmt.Errorf("it is %q (%d)", got, status)
		}
		return nil
	})
}

func (p *program) isStill(name, want string) {
	p.t.Helper()
	status, answer, err := p.call("GET", "/publish/"+name, nil)
	if got, _ := answer["status"].(string); err != nil || got != want {
		p.t.Fatalf("%s is %q (%d, %v), want %q", name, got, status, err, want)
	}
}

// address is an app's public address.
func (p *program) address(name string) string {
	p.t.Helper()
	_, answer, err := p.call("GET", "/publish/"+name, nil)
	url, _ := answer["url"].(string)
	if err != nil || url == "" {
		p.t.Fatalf("no address: %v %v", answer, err)
	}
	return url
}

// webApp is an app on this computer that wants an address.
func webApp(t *testing.T, text string) (port int) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s", text, r.Header.Get("X-Service-Role"))
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().(*net.TCPAddr).Port
}

// search lists the X windows on the screen that are called or classed so. It fails
// when it meets a menu or a notification that is just going, which says nothing about
// the others.
func (s *session) search(by, pattern string) (ids []string, err error) {
	out, err := s.tool("xdotool", "search", "--onlyvisible", by, pattern)
	if quiet, ok := errors.AsType[*exec.ExitError](err); ok && len(quiet.Stderr) == 0 {
		err = nil // how it says that there is none
	}
	return strings.Fields(out), err
}

// windows lists those of the program's title.
func (s *session) windows() ([]string, error) { return s.search("--name", "^Porchlight$") }

// shown is the window on the screen.
func (s *session) shown() (id string) {
	s.t.Helper()
	s.eventually("there is a window", func() error {
		ids, err := s.windows()
		if err == nil && len(ids) == 0 {
			err = errors.New("there is none")
		}
		if err == nil {
			id = ids[0]
		}
		return err
	})
	return id
}

func (s *session) windowShows(want bool) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("the window is on the screen: %v", want), func() error {
		got, err := s.windows()
		if err == nil && (len(got) > 0) != want {
			err = fmt.Errorf("windows: %v", got)
		}
		return err
	})
}

// webProcesses are WebKit's page processes below the app.
func (p *program) webProcesses() (pids []int) {
	for pid, name := range below(p.pid) {
		if strings.HasPrefix(name, "WebKitWebProces") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// pageEnds waits until there is no process of WebKit any more.
func (p *program) pageEnds() {
	p.t.Helper()
	p.eventually("WebKit's processes are gone", func() error {
		for pid, name := range below(p.pid) {
			if strings.HasPrefix(name, "WebKit") {
				return fmt.Errorf("there is %d, %s", pid, name)
			}
		}
		return nil
	})
}

// below names the processes that a process has started, and those that they have;
// one that has ended and that nobody waited for is none.
func below(pid int) map[int]string {
	names := map[int]string{}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		children, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(children)) {
			child, _ := strconv.Atoi(field)
			stat, _ := os.ReadFile("/proc/" + field + "/stat") // pid (name) state …
			_, named, _ := strings.Cut(string(stat), "(")
			end := strings.LastIndex(named, ") ")
			if end < 0 || named[end+2] == 'Z' {
				continue
			}
			names[child] = named[:end]
			maps.Copy(names, below(child))
		}
	}
	return names
}

var privateDirty = regexp.MustCompile(`(?m)^Private_Dirty:\s+(\d+) kB`)

// memory is the app's own private dirty memory in MiB, without WebKit's
// processes.
func (p *program) memory() float64 {
	syscall.Sync() // a program that was just built is dirty in the page cache, and would count
	raw := programs.Got(os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid)))(p.t)
	m := privateDirty.FindSubmatch(raw)
	if m == nil {
		p.t.Fatalf("no Private_Dirty in %s", raw)
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return float64(kb) / 1024
}

// notification is one that was shown.
type notification struct{ title, body string }

// notifications takes all off the screen and returns them, newest first.
func (s *session) notifications() (all []notification, err error) {
	// What is on the screen is not in the history yet.
	if _, err := s.tool("dunstctl", "close-all"); err != nil {
		return nil, err
	}
	out, err := s.tool("dunstctl", "history")
	if err != nil {
		return nil, err
	}
	var history struct {
		Data [][]map[string]struct {
			Data any `json:"data"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(out), &history); err != nil {
		return nil, err
	}
	for _, list := range history.Data {
		for _, n := range list {
			title, _ := n["summary"].Data.(string)
			body, _ := n["body"].Data.(string)
			all = append(all, notification{title, body})
		}
	}
	return all, nil
}

// timesTold is how many notifications of a title there were. One that is taken off the screen
// while it changes comes again, so a first telling may count twice.
func (s *session) timesTold(title string) (n int) {
	s.t.Helper()
	all := programs.Got(s.notifications())(s.t)
	for _, one := range all {
		if one.title == title {
			n++
		}
	}
	return n
}

// notified waits for a notification, takes all off the screen and returns its body.
func (s *session) notified(title string, or ...string) (body string) {
	s.t.Helper()
	// Looking into the history takes notes off the screen, and what stands there no more
	// is not changed in place: so nothing is touched before it was said.
	s.eventually("a program says "+title, func() error {
		said := s.told.all()
		if !slices.ContainsFunc(said, func(one string) bool { return one == title || slices.Contains(or, one) }) {
			return fmt.Errorf("said: %q", said)
		}
		return nil
	})
	s.eventually("notification "+title, func() error {
		all, err := s.notifications()
		if err != nil {
			return err
		}
		for _, n := range all {
			if n.title == title || slices.Contains(or, n.title) {
				body = n.body
				return nil
			}
		}
		return fmt.Errorf("notified: %v", all)
	})
	return body
}

// noteSays is notified, of a text that the pattern matches.
func (s *session) noteSays(title, pattern string) {
	s.t.Helper()
	if body := s.notified(title); !regexp.MustCompile(pattern).MatchString(body) {
		s.t.Errorf("the notification %q says %q", title, body)
	}
}

// displays waits until there are so many notifications on the screen.
func (s *session) displays(want string) {
	s.t.Helper()
	s.eventually("notifications on the screen: "+want, func() error {
		got, err := s.tool("dunstctl", "count", "displayed")
		if err == nil && strings.TrimSpace(got) != want {
			err = errors.New("displayed: " + got)
		}
		return err
	})
}

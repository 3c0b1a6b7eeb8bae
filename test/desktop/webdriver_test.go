//go:build rig

package desktop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// page is the real window's page, driven over the WebDriver protocol as a
// browser's would be: WebKitWebDriver starts the program, into which a small
// library is preloaded that puts its one web view under automation.
type page struct {
	*program
	session string // address of the WebDriver session, once the window is open
	opened  chan error
}

// automation is that library, built once for all tests.
var automation = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "porch")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "automation.so")
	out, err := exec.Command("sh", "-c", `gcc -shared -fPIC -o "$0" testdata/automation.c $(pkg-config --cflags --libs webkit2gtk-4.1)`, file).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("build the automation library: %w: %s", err, out)
	}
	return os.ReadFile(file)
})

// launchDriven starts the program in the session and waits for its loopback API.
// The page can be asked once the window was opened; see openWindow.
func (s *session) launchDriven() *page {
	s.t.Helper()
	api := programs.FreeAddress(s.t)
	return s.drive(api, "--api", api, "--https", programs.FreeAddress(s.t))
}

// drive is launchDriven with the program's own arguments; api is where they have
// its loopback API listen.
func (s *session) drive(api string, args ...string) *page {
	s.t.Helper()
	library := programs.Got(automation())(s.t)
	so, start := filepath.Join(s.dir, "automation.so"), filepath.Join(s.dir, "bin/driven")
	script := fmt.Sprintf("#!/bin/sh\nLD_PRELOAD=%s exec %s \"$@\" 2>>%s/app.log\n", so, binary(s.t), s.dir)
	programs.Must(s.t, os.WriteFile(so, library, 0o600), os.WriteFile(start, []byte(script), 0o700))
	port := strings.TrimPrefix(programs.FreeAddress(s.t), "127.0.0.1:")
	if forDocuments() != "" {
		port = "900" // where no program is offered for sharing
	}
	s.spawn("WebKitWebDriver", "--port="+port)
	base := "http://127.0.0.1:" + port
	s.eventually("WebKitWebDriver answers", func() error { return webDriver("GET", base+"/status", nil, nil) })

	p := &page{program: &program{session: s, data: filepath.Join(s.dir, "data"), api: api}, opened: make(chan error, 1)}
	s.used(p.data)
	args = append([]string{"--data", p.data}, args...)
	p.started = time.Now()
	go func() { // answers once there is a web view
		var answer struct{ SessionID string }
		err := webDriver("POST", base+"/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
			"webkitgtk:browserOptions": map[string]any{"binary": start, "args": args},
			"timeouts":                 map[string]any{"script": 300_000}, // ms; the machine may be busy
		}}}, &answer)
		p.session = base + "/session/" + answer.SessionID
		p.opened <- err
	}()
	p.serving()
	p.logged()
	p.eventually("the program says who it is", func() error {
		running, err := agentapi.ReadRunning(p.data)
		if err == nil && running.PID == 0 {
			err = errors.New("no pid yet")
		}
		p.pid = running.PID
		return err
	})
	return p
}

// openWindow opens the window by the tray and waits for its page.
func (p *page) openWindow() {
	p.t.Helper()
	p.trayClick("Open Porchlight")
	p.pageThere()
}

// pageThere waits for the page of a window that opens.
func (p *page) pageThere() {
	p.t.Helper()
	select {
	case err := <-p.opened:
		if err != nil {
			p.t.Fatalf("the page cannot be driven: %v\n%s", err, p.appLog())
		}
	case <-time.After(2 * patience):
		p.t.Fatalf("the page was not there in time\n%s", p.appLog())
	}
	p.see("main")
}

// shot is the session's, of a window that is drawn: what the page has is on the screen a
// moment later.
func (p *page) shot(name string) {
	p.t.Helper()
	if slices.ContainsFunc(p.env, func(v string) bool { return strings.HasPrefix(v, "WAYLAND_DISPLAY=") }) {
		p.program.shot(name) // it is no window of X
		return
	}
	id := p.shown()
	p.eventually("the window is drawn", func() error {
		// One that is not is of one colour.
		if colours := strings.TrimSpace(p.mustTool("import", "-window", id, "-format", "%k", "info:-")); colours == "1" {
			return errors.New("it is empty")
		}
		return nil
	})
	p.program.shot(name)
}

// webDriver sends one command; answer may be nil.
func webDriver(method, address string, body, answer any) error {
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(raw)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, payload)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var reply struct{ Value json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, reply.Value)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(reply.Value, answer)
}

const elementKey = "element-6066-11e4-a52e-4f735466cecf" // W3C WebDriver, section 12

// element finds the first that matches a CSS selector.
func (p *page) element(css string) (address string, err error) {
	var found map[string]string
	err = webDriver("POST", p.session+"/element", map[string]string{"using": "css selector", "value": css}, &found)
	return p.session + "/element/" + found[elementKey], err
}

// see waits until something matches.
func (p *page) see(css string) {
	p.t.Helper()
	p.eventually("the page shows "+css, func() error {
		_, err := p.element(css)
		return err
	})
}

// press clicks what matches once it stands still, as the pointer does: something
// that lies over it takes the click, which is an error.
func (p *page) press(css string) {
	p.t.Helper()
	pressed := false
	p.eventually("pressing "+css, func() error {
		element, err := p.element(css)
		if err == nil {
			err = webDriver("POST", p.session+"/execute/async", map[string]any{"script": standsStill, "args": []string{css}}, nil)
		}
		if err == nil {
			pressed = true
			err = webDriver("POST", element+"/click", map[string]any{}, nil)
		}
		if pressed && err != nil && strings.Contains(err.Error(), "invalid session id") {
			return nil // it quit the program, which ended before the driver could answer
		}
		return err
	})
	p.clicks++
}

// standsStill scrolls to an element, as people do, whom a note at the edge of the window must
// not keep from it, and calls back when it has been in one place for six frames.
const standsStill = `
	const [css, done] = arguments;
	document.querySelector(css)?.scrollIntoView({ block: 'center' });
	let last = '', still = 0;
	const look = () => {
		const box = document.querySelector(css)?.getBoundingClientRect();
		const now = box ? box.x + ' ' + box.y : '';
		still = now === last ? still + 1 : 0;
		last = now;
		if (still === 6) done(null);
		else requestAnimationFrame(look);
	};
	look();`

// named is the selector of the first such element with that name, once the page
// has it.
func (p *page) named(tag, name string) string {
	p.t.Helper()
	var css string
	p.eventually(fmt.Sprintf("the page shows a %s called %q", tag, name), func() error {
		// CSS knows nothing of texts; the page marks what is called so.
		err := webDriver("POST", p.session+"/execute/sync", map[string]any{"script": `
			const [tag, name] = arguments;
			const plain = (text) => text.replace(/[\u2068\u2069\u200b]/g, '').replace(/\s+/g, ' ').trim();
			for (const one of document.querySelectorAll(tag)) {
				const labelled = one.getAttribute('aria-labelledby');
				const said = one.getAttribute('aria-label') ?? (labelled ? document.getElementById(labelled)?.textContent : one.textContent) ?? '';
				if (plain(said) !== name && !(tag === 'input' && plain(one.labels?.[0]?.textContent ?? '') === name)) continue;
				one.dataset.asked ??= String((window.asked = (window.asked ?? 0) + 1));
				return tag + '[data-asked="' + one.dataset.asked + '"]';
			}
			return '';`, "args": []string{tag, name}}, &css)
		if err == nil && css == "" {
			err = errors.New("it does not")
		}
		return err
	})
	return css
}

// pressButton presses a button by its name.
func (p *page) pressButton(name string) {
	p.t.Helper()
	p.press(p.named("button", name))
}

// write types into a field by its name.
func (p *page) write(field, text string) {
	p.t.Helper()
	p.types(p.named("input", field), text)
}

// types types into what matches once it is there to be typed into.
func (p *page) types(css, text string) {
	p.t.Helper()
	p.eventually("typing into "+css, func() error {
		element, err := p.element(css)
		if err == nil {
			err = webDriver("POST", element+"/value", map[string]string{"text": text}, nil)
		}
		return err
	})
}

// holdToast keeps the toast that is there from leaving by itself, by its focus: a busy
// machine is late for the seconds that it stays.
func (p *page) holdToast() {
	p.t.Helper()
	p.see(".toast button")
	programs.Must(p.t, webDriver("POST", p.session+"/execute/sync", map[string]any{"script": `document.querySelector('.toast button').focus()`, "args": []string{}}, nil))
}

// view goes to one by the sidebar.
func (p *page) view(name string) {
	p.t.Helper()
	p.press(p.named("nav .cut", name))
	p.named("h1", name)
}

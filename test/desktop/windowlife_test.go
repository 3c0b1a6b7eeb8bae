//go:build rig

package desktop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"porchlight/agent/agentapi"
)

// The page's process dies, of a bug or for want of memory: the page comes back
// by itself and works, and the rest of the program never notices.
func TestPageThatDiesComesBack(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	p.serving()
	p.publish("notes", "Notes", webApp(t, "notes"))
	s.trayShows("Notes wants an address", true)
	s.trayClick("Open Porchlight")
	s.windowShows(true)
	s.request()

	first := p.webProcess()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.eventually("another web process", func() error {
		if now := p.webProcess(); now == 0 || now == first {
			return fmt.Errorf("it is %d", now)
		}
		return nil
	})
	p.isStill("notes", "pending")
	s.request()
	p.approveInWindow("notes")
	s.answered()

	// Twice in a row: it comes back a little later.
	second := p.webProcess()
	if err := syscall.Kill(second, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.publish("photos", "Photos", webApp(t, "photos"))
	s.request()
	p.approveInWindow("photos")
	if n := strings.Count(s.appLog(), "The page of the window died"); n != 2 {
		t.Errorf("the log tells of %d deaths", n)
	}

	// A page that was ended because the window is closed is not brought back.
	s.closeWindow()
	s.windowShows(false)
	s.eventually("the web process is gone", func() error {
		if n := p.webProcess(); n != 0 {
			return fmt.Errorf("there is %d", n)
		}
		return nil
	})
}

// webProcess is the pid of WebKit's page process, 0 without one.
func (p *program) webProcess() int {
	for _, pid := range p.descendants(p.cmd.Process.Pid) {
		if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.HasPrefix(string(raw), "WebKitWebProces") {
			return pid
		}
	}
	return 0
}

func (p *program) descendants(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		raw, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(raw)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), p.descendants(child)...)
			}
		}
	}
	return all
}

// The switch of the settings really has a browser that was never used before
// trust this computer's addresses, and really takes that back.
func TestTrustInTheWindow(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launchDriven()
	var account struct{ AuthURL string }
	p.ask(&account, "account")
	p.openWindow()
	p.press(p.named("input", "Have my browsers trust them")) // not yet
	p.pressButton("Try it")
	p.chromium(account.AuthURL, false)
	p.view("Settings")
	p.pressButton("Trust")
	p.named("main button", "Remove")
	p.chromium(account.AuthURL, true)
	p.shot("trusted")
	p.press(p.named("main button", "Remove"))
	p.named("main button", "Trust")
	p.chromium(account.AuthURL, false)
}

// chromium opens an address in a new profile and says whether the certificate
// was taken.
func (s *session) chromium(address string, trusts bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	profile, err := os.MkdirTemp(s.dir, "chromium")
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--user-data-dir="+profile, "--enable-logging=stderr", "--dump-dom", address)
	cmd.Env = s.env
	cmd.WaitDelay = time.Second
	var page, log strings.Builder
	cmd.Stdout, cmd.Stderr = &page, &log
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("chromium: %v\n%s", err, &log)
	}
	shown := strings.Contains(page.String(), "Sign in")
	refused := strings.Contains(log.String(), "net_error -202") // ERR_CERT_AUTHORITY_INVALID
	if shown == refused || shown != trusts {
		s.t.Errorf("%s is trusted: want %v; the page: %.600s\n%s", address, trusts, &page, &log)
	}
}

const (
	manyApps   = 200
	manyPeople = 5000
)

// TestWindowFigures prints what the window costs; the goals are in the test plan,
// not here: another machine has other figures.
func TestWindowFigures(t *testing.T) {
	s := newSession(t, desk{})
	p := s.launchDriven()
	s.trayShows("No app is on", true)
	t.Logf("private memory, no window yet: %.1f MiB (goal: below 30)", p.memory())

	owner := p.owner()
	port := webApp(t, "many")
	for i := range manyApps {
		name := fmt.Sprintf("app-%03d", i)
		p.publish(name, fmt.Sprintf("App %03d", i), port)
		if _, err := owner.Approve(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	p.notifications() // off the screen
	t.Logf("private memory, %d apps, no window yet: %.1f MiB", manyApps, p.memory())

	p.openWindow()
	p.see("[role=listitem]")
	t.Logf("private memory, window open: %.1f MiB", p.memory())

	drawn := func(what, script string, args ...any) {
		var ms float64
		if err := webDriver("POST", p.session+"/execute/async", map[string]any{"script": drawing + script, "args": append([]any{}, args...)}, &ms); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%s: %.0f ms", what, ms)
	}
	drawn(fmt.Sprintf("going to the list of %d apps until it is drawn", manyApps), `
		go('Settings'); painted(() => { const began = performance.now(); go('Apps'); when(() => rows() > 5, () => done(performance.now() - began)); });`)
	// A server takes a thousand at most; the page is given more.
	drawn(fmt.Sprintf("going to a list of %d people until it is drawn", manyPeople), `
		const [many] = args, list = window.go.ui.People.List;
		window.go.ui.People.List = async () => {
			const all = await list();
			for (let i = 0; i < many; i++) all.members.push({ email: 'person-' + i + '@example.com', accountId: 'a' + i, role: 'member', status: 'active', apps: ['App 001'] });
			return all;
		};
		const began = performance.now(); go('People'); when(() => rows() > 5, () => done(performance.now() - began));`, manyPeople)
	drawn("the slowest of 60 frames scrolling it from end to end", `
		const main = document.querySelector('main'), step = main.scrollHeight / 60;
		let last = performance.now(), worst = 0, left = 60;
		const frame = (now) => {
			worst = Math.max(worst, now - last), last = now;
			if (left-- === 0) return done(worst);
			main.scrollTop += step;
			requestAnimationFrame(frame);
		};
		requestAnimationFrame(frame);`)
	p.shot("people-5000")

	s.closeWindow()
	s.windowShows(false)
	s.eventually("the web process is gone", func() error {
		if n := p.webProcess(); n != 0 {
			return fmt.Errorf("there is %d", n)
		}
		return nil
	})
	t.Logf("private memory, window hidden: %.1f MiB (goal: below 60)", p.memory())
}

// TestOpeningFigures prints how long the owner waits for the window.
func TestOpeningFigures(t *testing.T) {
	s := newSession(t, desk{})
	p := s.launch()
	p.serving()
	t.Logf("click in the tray to window on the screen: %d ms, the first time (goal: below 500)", p.opening().Milliseconds())
	for range 2 {
		s.windowShows(true)
		s.closeWindow()
		s.windowShows(false)
		s.eventually("the web process is gone", func() error {
			if n := p.webProcess(); n != 0 {
				return fmt.Errorf("there is %d", n)
			}
			return nil
		})
		t.Logf("click in the tray to window on the screen: %d ms, again", p.opening().Milliseconds())
	}
}

// opening opens the window by the tray and returns how long that took: from the
// click to the window manager's word that it manages one window more.
func (p *program) opening() time.Duration {
	p.t.Helper()
	conn, err := xgb.NewConnDisplay(p.display())
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	root := xproto.Setup(conn).DefaultScreen(conn).Root
	const name = "_NET_CLIENT_LIST"
	atom, err := xproto.InternAtom(conn, true, uint16(len(name)), name).Reply()
	if err == nil {
		err = xproto.ChangeWindowAttributesChecked(conn, root, xproto.CwEventMask, []uint32{xproto.EventMaskPropertyChange}).Check()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	windows := func() uint32 {
		list, err := xproto.GetProperty(conn, false, root, atom.Atom, xproto.AtomWindow, 0, 1<<10).Reply()
		if err != nil {
			p.t.Fatal(err)
		}
		return list.ValueLen
	}
	before := windows()
	shown := make(chan time.Time, 1)
	go func() {
		for {
			event, err := conn.WaitForEvent()
			if event == nil {
				p.t.Errorf("the display ended: %v", err)
				return
			}
			if change, ok := event.(xproto.PropertyNotifyEvent); ok && change.Atom == atom.Atom && windows() > before {
				shown <- time.Now()
				return
			}
		}
	}()
	clicked := p.trayClick("Open Porchlight")
	select {
	case at := <-shown:
		return at.Sub(clicked)
	case <-time.After(patience):
		p.t.Fatalf("no window came\n%s", p.appLog())
		return 0
	}
}

// drawing is what the figures' scripts have in common: it calls back in the
// frame after a condition holds.
const drawing = `
	const done = arguments[arguments.length - 1], args = [...arguments];
	const go = (name) => [...document.querySelectorAll('nav button')].find((one) => one.textContent.includes(name)).click();
	const rows = () => document.querySelectorAll('main [role=listitem]').length;
	const painted = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
	const when = (holds, then) => (holds() ? painted(then) : requestAnimationFrame(() => when(holds, then)));
`

// owner is the owner tier, with the secret from the keychain.
func (p *page) owner() *agentapi.Client {
	p.t.Helper()
	var running struct{ OwnerSocket string }
	raw, err := os.ReadFile(filepath.Join(p.data, "agent.json"))
	if err == nil {
		err = json.Unmarshal(raw, &running)
	}
	if err == nil && running.OwnerSocket == "" {
		err = errors.New("there is no owner socket in agent.json")
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return agentapi.NewOwner(running.OwnerSocket, strings.TrimSpace(p.ownerSecret()))
}

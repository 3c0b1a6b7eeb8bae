//go:build rig

package desktop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/godbus/dbus/v5"

	"porchlight/test/programs"
)

// refused starts the app where it cannot work: it ends with code 1 and one clear
// sentence, and leaves nothing behind.
func refused(t *testing.T, s *session, p *program, wants ...string) {
	t.Helper()
	p.ends(1)
	said := s.appLog()
	for _, want := range wants {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	for _, never := range []string{"panic", "goroutine "} {
		if strings.Contains(said, never) {
			t.Errorf("it says %q:\n%s", never, said)
		}
	}
}

func TestNoDesktopAtAll(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{noDisplay: true, noBus: true, first: true})
	p := s.begin()
	refused(t, s, p, "There is no desktop session here", "porchlight agent --local")
	if _, err := os.Stat(p.data); !os.IsNotExist(err) {
		t.Errorf("it made its data directory all the same: %v", err)
	}
}

func TestBusyPort(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	p := s.begin("--api", l.Addr().String())
	refused(t, s, p, "Porchlight cannot start", l.Addr().String())
	s.noteSays("Porchlight could not go on", "cannot start")
}

func TestDataDirectoryThatCannotBe(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	file := filepath.Join(s.dir, "file")
	s.write(file, "no directory")
	p := s.begin("--data", filepath.Join(file, "data"))
	refused(t, s, p, "Porchlight cannot create its data directory "+file)
	if raw, err := os.ReadFile(file); err != nil || string(raw) != "no directory" {
		t.Errorf("%q, %v", raw, err)
	}
}

func TestNoKeychain(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{keyring: "none"})
	p := s.launch()
	s.trayShows("There is no keychain here", true)
	s.noteSays("There is no keychain here", "a file only you can read")
	p.publish("notes", "Notes", webApp(t, "notes"))
	p.is("notes", "pending")
	s.shot("no-keychain")

	// The owner may choose a file instead, once and for all.
	s.trayClick("Keep the owner secret in a file")
	s.trayShows("There is no keychain here", false)
	s.trayClick("Notes wants an address > Approve")
	p.is("notes", "live")
	p.quit()
	p = s.launch()
	s.trayShows("Notes", true)
	for _, dir := range []string{p.data, filepath.Join(s.dir, "home")} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && strings.HasSuffix(path, ".secret") {
				if info.Mode().Perm() != 0o600 {
					t.Errorf("%s is %v", path, info.Mode())
				}
				if strings.HasPrefix(path, p.data) {
					t.Errorf("%s lies in the data directory", path)
				}
			}
			return err
		})
		programs.Must(t, err)
	}
}

// A locked keychain holds up approving, not the apps and not taking away, and is
// noticed when it opens.
func TestLockedKeychain(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{keyring: "locked"})
	p := s.launchDriven()
	s.trayShows("Your keychain is locked", true)
	s.trayShows("Unlock…", true)
	s.noteSays("Your keychain is locked", "unlock")
	p.publish("notes", "Notes", webApp(t, "notes"))
	p.is("notes", "pending")
	s.trayShows("1 waits for you: unlock to answer", true)
	s.trayShows("Notes wants an address", false) // nothing can be given

	// One click in the window closes everything.
	p.openWindow()
	p.press(p.named("input", "Go dark"))
	s.trayShows("Light up again", true)
	s.shot("locked")
	s.trayClick("Light up again")
	s.noteSays("Porchlight did not light up again", "Unlock your keychain first")

	s.unlock()
	s.trayShows("Unlock…", false)
	s.trayClick("Light up again")
	s.trayShows("Light up again", false)
	s.trayClick("Notes wants an address > Approve")
	p.is("notes", "live")
	s.trayShows("Go dark", true)
}

// Who was there before the keychain opened stays: a visitor's WebSocket, an app's
// registration, and the menu bar's own stream of events.
func TestKeychainUnlockedDropsNobody(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return // a page, for signing in
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, text, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, text) != nil {
				return
			}
		}
	}))
	t.Cleanup(app.Close)
	address := p.approved("notes", "Notes", app.Listener.Addr().(*net.TCPAddr).Port)
	site := programs.Got(url.Parse(address))(t)
	handshake := http.Header{"Origin": {"https://" + site.Host}}
	for _, cookie := range p.ownersBrowser("notes").Cookies(site) {
		handshake.Add("Cookie", cookie.String())
	}
	// Whether the certificate is right is the proxy's tests' business.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+site.Port())
	}
	p.quit()
	s.lock(s.running["gnome-keyring"])
	p.restart()
	s.trayShows("Your keychain is locked", true)

	registration := map[string]any{"appId": "com.example.notes", "pid": os.Getpid()}
	if status, answer, err := p.call("POST", "/engine/register", registration); err != nil || status != http.StatusOK {
		t.Fatalf("register: %d %v %v", status, answer, err)
	}
	var socket *websocket.Conn
	s.eventually("the visitor's WebSocket", func() (err error) {
		socket, _, err = websocket.Dial(t.Context(), address, &websocket.DialOptions{
			HTTPClient: &http.Client{Transport: transport}, HTTPHeader: handshake,
		})
		return err
	})
	defer socket.CloseNow()
	echo := func(text string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err := socket.Write(ctx, websocket.MessageText, []byte(text))
		if err == nil {
			_, _, err = socket.Read(ctx)
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	echo("before")
	s.unlock()
	s.trayShows("Unlock…", false)
	echo("after")
	if status, answer, err := p.call("POST", "/engine/heartbeat", registration); err != nil || status != http.StatusOK || answer["registrants"] != 1.0 {
		t.Errorf("heartbeat: %d %v %v", status, answer, err)
	}
	p.publish("wiki", "Wiki", webApp(t, "wiki"))
	s.trayShows("Waiting for you", true)
	if said := s.appLog(); strings.Contains(said, "the agent's events ended") {
		t.Error("the menu bar had to follow the agent anew")
	}
}

// unlock gives the running keyring its password, as its own question for it
// would.
func (s *session) unlock() {
	s.t.Helper()
	const login = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")
	service := s.bus.Object("org.freedesktop.secrets", "/org/freedesktop/secrets")
	var output dbus.Variant
	var path dbus.ObjectPath
	programs.Must(s.t, service.Call("org.freedesktop.Secret.Service.OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&output, &path))
	password := struct {
		Session           dbus.ObjectPath
		Parameters, Value []byte
		ContentType       string
	}{path, []byte{}, []byte("rigpass"), "text/plain"}
	programs.Must(s.t, service.Call("org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface.UnlockWithMasterPassword", 0, login, password).Err)
}

// Without a tray, as in GNOME, window and notifications do all that it does: the window opens by
// itself and says what brings the lamp, requests are answered in both, a second start leads back,
// and the window quits. A panel that comes has the lamp, and the hint goes.
func TestNoTrayHost(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{noPanel: true})
	p := s.launchDriven()
	p.pageThere() // there is no other way to see a request
	p.eventually("it says what brings the lamp", func() error { return p.has("gnome-shell-extension-appindicator") })
	s.shot("window")
	p.publish("notes", "Notes", webApp(t, "notes"))
	p.enter(p.named("button", "Approve"))
	p.is("notes", "live")
	const focus = `window.dispatchEvent(new Event('focus'))`
	p.view("Settings")
	s.shot("settings")
	s.startPanel() // a panel appears, as an extension would
	s.trayShows("Notes", true)
	p.eventually("the hint is gone", func() error {
		programs.Must(t, webDriver("POST", p.session+"/execute/sync", map[string]any{"script": focus, "args": []string{}}, nil))
		if p.has("gnome-shell-extension-appindicator") == nil {
			return errors.New("it is there")
		}
		return nil
	})
	_ = syscall.Kill(-s.running["xfce4-panel"].PID(), syscall.SIGKILL)
	s.waitName(watcher, false)
	p.signal(syscall.SIGTERM)
	s.gone(p.program)

	again := s.launchDriven()
	again.pageThere()
	again.view("Settings")
	again.pressButton("Quit Porchlight")
	s.gone(again.program)

	last := s.launch()
	s.windowShows(true)
	s.closeWindow()
	s.windowShows(false)
	s.noteSays("Porchlight stays on", "start Porchlight again")
	last.publish("photos", "Photos", webApp(t, "photos"))
	s.displays("1")
	s.mustTool("dunstctl", "context")
	last.is("photos", "live")
	last.again()
	s.windowShows(true)
	s.startPanel()
	s.trayShows("Notes", true)
	last.quit()
}

// gone waits until a driven program has ended.
func (s *session) gone(p *program) {
	s.t.Helper()
	s.eventually("the app is gone", func() error {
		if held, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid)); err == nil {
			return errors.New(held)
		}
		return nil
	})
}

// has says whether the page shows a text.
func (p *page) has(text string) error {
	var shown string
	err := webDriver("POST", p.session+"/execute/sync", map[string]any{"script": `return document.body.textContent`, "args": []string{}}, &shown)
	if err == nil && !strings.Contains(shown, text) {
		err = errors.New("the page does not show " + text)
	}
	return err
}

func TestNoBus(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{noBus: true})
	p := s.launchDriven()
	p.pageThere() // there is no tray
	for _, name := range below(os.Getpid()) {
		if strings.Contains(name, "dbus-launch") {
			t.Errorf("a session bus was started: %s", name)
		}
	}

	// There is no keychain without the bus, either.
	p.shot("keyless")
	p.pressButton("Keep it in a file")
	p.named("h2", "No apps yet") // the window knows how things are
	p.publish("notes", "Notes", webApp(t, "notes"))
	p.enter(p.named("button", "Approve")) // not the amber one that adds an app
	p.is("notes", "live")
	s.answered()
	s.shot("window")
	p.signal(syscall.SIGTERM)
	s.gone(p.program)

	// The choice holds from now on.
	again := s.launch()
	again.is("notes", "live")
	s.windowShows(true)
	again.signal(syscall.SIGINT)
	again.ends(0)
}

func TestNoDisplay(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{noDisplay: true})
	p := s.launch()
	p.again()
	s.eventually("it says there is no display", func() error {
		if !strings.Contains(s.appLog(), "There is no display here") {
			return os.ErrNotExist
		}
		return nil
	})
	p.serving() // and goes on
	p.signal(syscall.SIGTERM)
	p.ends(0)
}

func TestHiddenStartLeavesARunningOneAlone(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch("--hidden")
	p.again("--hidden")
	s.trayShows("No app is on", true)
	s.windowShows(false)
	// Another data directory is another Porchlight.
	s.launch("--data", filepath.Join(s.dir, "other"), "--hidden")
}

//go:build rig

package desktop

import (
	"fmt"
	"image"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"porchlight/test/programs"
)

// The main job, from the first start to the last: an app asks, the owner
// approves, a visitor comes, the owner takes it back.
func TestW1_W2_W4_W7_Story(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	registered := make(chan *dbus.Signal, 8)
	programs.Must(t, s.bus.AddMatchSignal(dbus.WithMatchInterface("org.kde.StatusNotifierWatcher"), dbus.WithMatchMember("StatusNotifierItemRegistered")))
	s.bus.Signal(registered)

	p := s.begin()
	for sig := range registered {
		if strings.HasSuffix(sig.Name, ".StatusNotifierItemRegistered") {
			break
		}
	}
	t.Logf("exec to tray: %d ms", time.Since(p.started).Milliseconds())
	p.serving()
	s.trayShows("No app is on", true)
	s.shot("1-first-start")
	t.Logf("private memory, no window yet: %.1f MiB", p.memory())
	s.windowShows(false) // none opened by itself
	if names := below(p.pid); len(names) != 0 {
		t.Errorf("processes beside the app before the window was opened: %v", names)
	}

	// The owner secret is in the keychain, and only its hash in the data.
	secret := strings.TrimSpace(s.ownerSecret())
	if len(secret) < 40 {
		t.Fatalf("the keychain holds %q", secret)
	}
	if file := containing(t, p.data, secret); file != "" {
		t.Fatalf("the owner secret lies in %s", file)
	}

	// They go on when a part of the story is over.
	notes, photos, paperless, diary := webApp(t, "notes"), webApp(t, "photos"), webApp(t, "paperless"), webApp(t, "diary")

	t.Run("approve from the tray", func(t *testing.T) { approveFromTheTray(t, p, notes) })
	t.Run("approve with the mouse", func(t *testing.T) { approveWithTheMouse(t, p, photos) })
	t.Run("approve in the window", func(t *testing.T) { approveInTheWindow(t, p, paperless) })
	t.Run("closing hides and ends the page", func(t *testing.T) { closeAndComeBack(t, p, diary) })
	t.Run("revoke from the tray", func(t *testing.T) { revokeFromTheTray(t, p) })

	p.quit()
	if _, _, err := p.call("GET", "/status", nil); err == nil {
		t.Error("the loopback API answers after Quit")
	}
	s.eventually("the panel has taken the icon off", func() error {
		if items := s.trayItems(); len(items) != 0 {
			return fmt.Errorf("there is %v", items)
		}
		return nil
	})

	// The next start knows what was decided, and tells nothing twice.
	p.restart("--hidden")
	p.is("photos", "live")
	s.trayShows("Photos > Open", true)
	if got := strings.TrimSpace(s.ownerSecret()); got != secret {
		t.Error("a second start made another owner secret")
	}
	p.signal(syscall.SIGTERM)
	p.ends(0)
}

func approveFromTheTray(t *testing.T, p *program, port int) {
	p.publish("notes", "Notes", port)
	p.is("notes", "pending")
	p.trayShows("Notes wants an address", true)
	body := p.notified("Notes wants an address")
	if !strings.Contains(body, "Then only you can open it.") || !strings.Contains(body, "notes.") {
		t.Errorf("the notification says %q", body)
	}
	p.isStill("notes", "pending") // closing a notification decides nothing
	p.trayClick("Notes wants an address > Approve")
	p.is("notes", "live")
	p.trayShows("Notes wants an address", false)
	p.trayShows("Notes > Open", true)

	// A stranger is sent to sign in; the owner is let in by the menu's Open.
	visitor := p.guest()
	resp := programs.Got(visitor.Once(navigation(t, p.address("notes"))))(t)
	resp.Body.Close()
	if resp.StatusCode/100 != 3 {
		t.Fatalf("a stranger got %s", resp.Status)
	}
	p.trayClick("Notes > Open")
	var page string
	p.eventually("the browser is opened", func() error {
		opened := p.opened()
		if len(opened) == 0 {
			return os.ErrNotExist
		}
		page = opened[len(opened)-1]
		return nil
	})
	if strings.Contains(page, "://") {
		t.Fatalf("the one-time link was in a command line: %s", page)
	}
	if got, err := visitor.Open(t.Context(), linkIn(t, page)); err != nil || got.Body != "notes for owner" {
		t.Errorf("the owner's browser shows %+v, %v", got, err)
	}

	// Copied with no window in sight.
	p.trayClick("Notes > Copy link")
	want := p.address("notes")
	p.eventually("the address is on the clipboard", func() error {
		got, err := p.tool("xclip", "-o", "-selection", "clipboard")
		if err != nil {
			return err
		}
		if got != want { // maybe not yet
			return fmt.Errorf("pasted %q, want %q", got, want)
		}
		return nil
	})
}

func approveWithTheMouse(t *testing.T, p *program, port int) {
	p.publish("photos", "Photos", port)
	p.trayShows("Photos wants an address", true)
	p.notified("Photos wants an address") // and off the screen
	p.trayStays()
	p.openTray()
	p.shot("2-tray-menu")
	// The address, then the request, and into it: Approve is its first line.
	p.keys("Down", "Down", "Right")
	p.menuOpen(2)
	p.shot("3-tray-request")
	p.keys("Return")
	p.is("photos", "live")
}

func approveInTheWindow(t *testing.T, p *program, port int) {
	p.publish("paperless", "Paperless", port)
	p.trayShows("Paperless wants an address", true)
	asked := time.Now()
	p.trayClick("Open Porchlight")
	p.windowShows(true)
	p.request()
	p.shot("4-window-request")
	p.approveInWindow("paperless")
	t.Logf("click in the tray to approved in the window: %d ms", time.Since(asked).Milliseconds())
	p.answered()
	p.shot("5-window-approved")
	t.Logf("private memory, window open: %.1f MiB", p.memory())
	if pids := p.webProcesses(); len(pids) != 1 {
		t.Errorf("web processes with the window open: %v", pids)
	}
}

func closeAndComeBack(t *testing.T, p *program, port int) {
	before := p.position()
	p.closeWindow()
	p.windowShows(false)
	p.pageEnds()
	threads := programs.Got(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", p.pid)))(t)
	for _, thread := range threads { // each wakes the computer for nothing
		if name, _ := os.ReadFile(thread); strings.Contains(string(name), "Pressure") {
			t.Errorf("a thread %q goes on", name)
		}
	}
	t.Logf("private memory, window hidden: %.1f MiB", p.memory())
	p.isStill("paperless", "live")
	// What changes meanwhile is there when it comes back.
	p.publish("diary", "Diary", port)
	p.again()
	p.windowShows(true)
	// The window manager may move it out of the panel's way, no further.
	p.eventually("the window is where it was", func() error {
		if d := p.position().Sub(before); !d.In(image.Rect(-8, -8, 9, 9)) {
			return fmt.Errorf("it is %v from there", d)
		}
		return nil
	})
	p.approveInWindow("diary")
	p.answered()
	p.shot("6-window-again")
	p.closeWindow()
	p.windowShows(false)
}

func revokeFromTheTray(t *testing.T, p *program) {
	address := p.address("notes")
	p.trayClick("Notes > Revoke > Yes, revoke Notes")
	p.is("notes", "")
	p.trayShows("Notes", false)
	p.eventually("the address is gone", func() error {
		page, err := p.guest().Open(t.Context(), address)
		if err != nil || page.Status == http.StatusNotFound {
			return nil // nobody answers for that name
		}
		return os.ErrExist
	})
}

// A notification's own buttons decide too.
func TestW2_ApproveOnTheNotification(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{light: true})
	p := s.launch("--panel", "light")
	s.trayShows("No app is on", true)
	p.publish("notes", "Notes <b>&amp;</b> more", webApp(t, "notes"))
	s.displays("1")
	s.shot("notification")
	s.mustTool("dunstctl", "action") // a click on it: opens the window
	s.windowShows(true)
	p.isStill("notes", "pending")
	s.closeWindow()
	s.windowShows(false)
	s.notified("Porchlight stays on") // and off the screen

	// The same service protocol with a press on Approve.
	p.publish("photos", "Photos", webApp(t, "photos"))
	s.displays("1")
	s.mustTool("dunstctl", "context") // dunst lists the buttons and has one picked
	p.is("photos", "live")
	p.isStill("notes", "pending")
}

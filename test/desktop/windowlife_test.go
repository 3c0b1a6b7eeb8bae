//go:build rig

package desktop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"porchlight/test/programs"
)

// The page's process dies, of a bug or for want of memory: the page comes back
// by itself and works, and the rest of the program never notices.
func TestPageThatDiesComesBack(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	p.publish("notes", "Notes", webApp(t, "notes"))
	s.trayShows("Notes wants an address", true)
	s.trayClick("Open Porchlight")
	s.windowShows(true)
	s.request()

	first := p.webProcess()
	programs.Must(t, syscall.Kill(first, syscall.SIGKILL))
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
	programs.Must(t, syscall.Kill(second, syscall.SIGKILL))
	p.publish("photos", "Photos", webApp(t, "photos"))
	s.request()
	p.approveInWindow("photos")
	if n := strings.Count(s.appLog(), "the page of the window died"); n != 2 {
		t.Errorf("the log tells of %d deaths", n)
	}

	// A page that was ended because the window is closed is not brought back, nor what
	// WebKit has beside it, until the window is opened again.
	s.closeWindow()
	s.windowShows(false)
	p.pageEnds()
	s.trayClick("Open Porchlight")
	s.windowShows(true)
	p.publish("music", "Music", webApp(t, "music"))
	s.request()
	p.approveInWindow("music")
	if n := strings.Count(s.appLog(), "the page of the window died"); n != 2 {
		t.Errorf("the log tells of %d deaths", n)
	}
}

// webProcess is the pid of WebKit's page process, 0 without one.
func (p *program) webProcess() int {
	return slices.Max(append(p.webProcesses(), 0))
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
	p.chromium(account.AuthURL, false)
	p.view("Settings")
	p.press("#more summary")
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
	profile := programs.Got(os.MkdirTemp(s.dir, "chromium"))(s.t)
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

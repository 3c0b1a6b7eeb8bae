// Package windows has an owner's story happen with the programs for Windows, under the Wine
// of Debian 13: installed, an app that asks, approved, opened, revoked, installed anew and
// removed. It needs root, for the root that build/wine.sh makes and for a network of its
// own, in which Porchlight's usual ports are free: it is `make test-windows`, and skipped
// elsewhere.
package windows

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// notTried is what Wine cannot show, or what needs more than Wine.
var notTried = []string{
	"the menu bar, its tray icon, notifications and the window: they need WebView2",
	"another user of the computer: Wine has one",
	"that the pipe and the directories refuse other users and computers: the same",
	"the start at login: Wine has no login, so the value is read and its command started",
	"trust in the browsers' certificates",
	"Windows itself, on amd64 and on arm64",
}

func TestMain(m *testing.M) {
	if os.Getenv("PORCHLIGHT_WINDOWS") == "" {
		fmt.Println("skipped: these tests need root and Wine; make test-windows runs them")
		return
	}
	code := m.Run()
	for _, what := range notTried {
		fmt.Println("not tried:", what)
	}
	os.Exit(code)
}

// wine is a Windows of a test's own.
type wine struct {
	t       *testing.T
	prefix  string // in the root
	network string // its name
	drive   string // C:, as this system sees it
	scratch string // of this system
	env     []string
}

func newWine(t *testing.T) *wine {
	t.Helper()
	root := os.Getenv("PORCHLIGHT_WINDOWS_ROOT")
	if root == "" {
		cache := programs.Got(os.UserCacheDir())(t)
		root = filepath.Join(cache, "porchlight", "windows")
	}
	w := &wine{t: t, network: fmt.Sprintf("porchlight-%d", os.Getpid()), scratch: t.TempDir()}
	w.prefix = "/home/maya/" + w.network
	w.drive = filepath.Join(root, w.prefix, "drive_c")
	w.env = append(os.Environ(), "PREFIX="+w.prefix)
	w.host("ip", "netns", "add", w.network)
	t.Cleanup(func() {
		w.script(context.Background(), "end")
		w.host("ip", "netns", "del", w.network)
		if err := os.RemoveAll(filepath.Join(root, w.prefix)); err != nil {
			t.Error(err)
		}
	})
	w.host("ip", "-n", w.network, "link", "set", "lo", "up")
	return w
}

// host runs a command of this system, outside.
func (w *wine) host(name string, args ...string) string {
	w.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// script is build/wine.sh in the test's network.
func (w *wine) script(ctx context.Context, args ...string) (string, error) {
	cmd := w.command(ctx, args...)
	// Into a file: what a program leaves running keeps a pipe open.
	out := programs.Got(os.CreateTemp(w.scratch, "out"))(w.t)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	return strings.ReplaceAll(string(programs.Got(os.ReadFile(out.Name()))(w.t)), "\r", ""), err
}

func (w *wine) command(ctx context.Context, args ...string) *exec.Cmd {
	script := programs.Got(filepath.Abs("../../build/wine.sh"))(w.t)
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", w.network, script}, args...)...)
	cmd.Env = w.env
	return cmd
}

// run runs a program of Windows to its end.
func (w *wine) run(program string, args ...string) string {
	w.t.Helper()
	out, err := w.script(w.t.Context(), append([]string{"exec", program}, args...)...)
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	w.t.Logf("> %s %s\n%s", filepath.Base(program), strings.Join(args, " "), strings.TrimSpace(out))
	return out
}

// begin starts one that goes on until the test ends.
func (w *wine) begin(program string, args ...string) *programs.Process {
	w.t.Helper()
	p := programs.Begin(w.t, w.command(context.Background(), append([]string{"exec", program}, args...)...))
	w.t.Cleanup(func() { w.script(context.Background(), "end") }) // a signal reaches the script alone
	return p
}

// visitor is curl in the test's network, with cookies and the computer's certificates.
func (w *wine) visitor(args ...string) (body string, status string) {
	w.t.Helper()
	page := filepath.Join(w.scratch, "page")
	jar := filepath.Join(w.scratch, "jar")
	_ = os.Remove(page) // of the one before
	cmd := exec.Command("ip", append([]string{"netns", "exec", w.network, "curl", "-sS", "-L", "--max-time", "20", "--noproxy", "*", "-o", page, "-w", "%{http_code}",
		"--cacert", filepath.Join(w.data(), "ca", "root.pem"), "-c", jar, "-b", jar}, args...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	_ = cmd.Run()               // a refused connection has the status 000
	raw, _ := os.ReadFile(page) // of a refused connection there is none
	return string(raw), strings.TrimSpace(out.String())
}

func (w *wine) local() string { return filepath.Join(w.drive, "users", "maya", "AppData", "Local") }

// data is the usual data directory.
func (w *wine) data() string { return filepath.Join(w.local(), "Porchlight") }

// installed is where the installer puts a program.
func (w *wine) installed(name string) string {
	return filepath.Join(w.local(), "Programs", "Porchlight", name)
}

// inside is how that is called in Windows.
func inside(name string) string {
	return `C:\users\maya\AppData\Local\Programs\Porchlight\` + name
}

// until waits for something of a program that says nothing itself.
func (w *wine) until(what string, so func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("waited for a minute, and not: %s", what)
		}
	}
}

func there(path string) bool { _, err := os.Lstat(path); return err == nil }

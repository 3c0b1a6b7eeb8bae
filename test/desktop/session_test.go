//go:build rig

package desktop

import (
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"porchlight/test/programs"
)

// patience bounds the wait for any one thing, on a machine that has much else to do.
const patience = time.Minute

// desk is what a session has.
type desk struct {
	noDisplay bool
	noBus     bool
	keyring   string // "" unlocked, "locked" or "none"
	noPanel   bool
	panel     func(*session) // nil is Xfce's
	light     bool           // a light panel
	dark      bool           // windows are dark
	tidy      bool           // for pictures in the documentation: see tidy_test.go
	fine      bool           // a screen with two pixels where others have one, each way
	first     bool           // nobody has started it before: its window opens by itself
	// screenReader has programs tell assistive technology what they show.
	screenReader bool
	language     string // LANG; "" is C.UTF-8
	picks        string // the button of a notification that is pressed; "" is Approve
}

// session is a private desktop.
type session struct {
	t    *testing.T
	dir  string
	env  []string
	bus  *dbus.Conn // nil without a bus
	opts desk

	told *notices // what programs had dunst say

	clicks, pressed int // of the owner's mouse and keyboard, as they are done

	// running are the parts of the desktop that a test may end and start again.
	running map[string]*programs.Process
}

func newSession(t *testing.T, opts desk) *session {
	t.Helper()
	// A short path: sockets below it must stay under 104 bytes.
	dir := programs.Got(os.MkdirTemp("", "porch"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &session{t: t, dir: dir, opts: opts, told: &notices{}, running: map[string]*programs.Process{}}
	home := filepath.Join(dir, "home")
	for _, d := range []string{"home/.config/dunst", "home/.config/xfce4/xfconf/xfce-perchannel-xml", "home/.local/share", "home/.cache", "run", "bin", "services"} {
		programs.Must(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	s.env = []string{
		"HOME=" + home, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "XDG_CONFIG_HOME=" + home + "/.config",
		"XDG_DATA_HOME=" + home + "/.local/share", "XDG_CACHE_HOME=" + home + "/.cache", "TMPDIR=" + dir,
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "LANG=" + cmp.Or(opts.language, "C.UTF-8"), "USER=maya", "LOGNAME=maya",
		"LIBGL_ALWAYS_SOFTWARE=1",
	}
	if !opts.screenReader {
		s.env = append(s.env, "NO_AT_BRIDGE=1", "GTK_A11Y=none")
	}
	s.installBrowser()
	s.dress()
	if !opts.noDisplay {
		s.startX()
	}
	if !opts.noBus {
		s.startBus()
		s.startKeyring()
	}
	if opts.screenReader {
		s.startAccessibility()
	}
	if !opts.noDisplay && !opts.noBus {
		s.startWindowManager()
		s.startDunst()
		if opts.panel != nil {
			opts.panel(s)
			s.waitName(watcher, true)
		} else if !opts.noPanel {
			s.startPanel()
		}
	}
	return s
}

// spawn runs a program of the session until the test ends.
func (s *session) spawn(name string, args ...string) {
	s.t.Helper()
	s.running[name] = s.run(exec.Command(name, args...))
}

// run is spawn of a command, with the processes that it starts.
func (s *session) run(cmd *exec.Cmd) *programs.Process {
	s.t.Helper()
	cmd.Env = s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second // some of those outlive it and hold its output
	p := programs.Begin(s.t, cmd)
	s.t.Cleanup(func() {
		_ = syscall.Kill(-p.PID(), syscall.SIGTERM)
		select {
		case <-p.Done():
		case <-time.After(3 * time.Second):
			_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
		}
	})
	return p
}

// says waits until a part of the desktop has printed what the pattern matches.
func (s *session) says(p *programs.Process, pattern string) (found []string) {
	s.t.Helper()
	found = programs.Got(p.Says(s.t.Context(), pattern))(s.t)
	return found
}

func (s *session) startX() {
	screen := "1100x700x24"
	if s.opts.fine {
		screen = "2200x1400x24"
		s.env = append(s.env, "GDK_SCALE=2")
	}
	// -r: a key is pressed once, however long a busy machine takes to let it go.
	s.spawn("Xvfb", "-displayfd", "1", "-screen", "0", screen, "-nolisten", "tcp", "-r")
	s.env = append(s.env, "DISPLAY=:"+s.says(s.running["Xvfb"], `(\d+)\n`)[1])
	s.wallpaper(0x58626b)
}

func TestMain(m *testing.M) {
	xgb.Logger = log.New(io.Discard, "", 0) // it tells of every display that ends
	os.Exit(m.Run())
}

// wallpaper gives the screen a colour, for the people who look at screenshots.
func (s *session) wallpaper(rgb uint32) {
	s.t.Helper()
	conn := programs.Got(xgb.NewConnDisplay(s.display()))(s.t)
	// The server resets, colour included, when its last client leaves.
	s.t.Cleanup(conn.Close)
	root := xproto.Setup(conn).DefaultScreen(conn).Root
	programs.Must(s.t, xproto.ChangeWindowAttributesChecked(conn, root, xproto.CwBackPixel, []uint32{rgb}).Check())
	xproto.ClearArea(conn, false, root, 0, 0, 0, 0)
}

func (s *session) display() string {
	for _, v := range s.env {
		if d, ok := strings.CutPrefix(v, "DISPLAY="); ok {
			return d
		}
	}
	return ""
}

// startBus starts a bus that starts nothing by itself but the panel's settings:
// what is absent from a test is absent.
func (s *session) startBus() {
	conf := filepath.Join(s.dir, "bus.conf")
	s.write(conf, `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><keep_umask/><listen>unix:path=`+s.dir+`/bus</listen><servicedir>`+s.dir+`/services</servicedir>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`)
	if raw, err := os.ReadFile("/usr/share/dbus-1/services/org.xfce.Xfconf.service"); err == nil {
		s.write(filepath.Join(s.dir, "services/org.xfce.Xfconf.service"), string(raw))
	}
	s.env = append(s.env, "DBUS_SESSION_BUS_ADDRESS="+s.busAddress())
	s.runBus()
}

// busAddress is the same after a restart, as a systemd user bus's is.
func (s *session) busAddress() string { return "unix:path=" + s.dir + "/bus" }

func (s *session) runBus() {
	s.spawn("dbus-daemon", "--config-file="+filepath.Join(s.dir, "bus.conf"), "--nofork", "--print-address")
	s.says(s.running["dbus-daemon"], `\n`) // printed once it listens
	conn := programs.Got(dbus.Connect(s.busAddress()))(s.t)
	s.t.Cleanup(func() { _ = conn.Close() })
	s.bus = conn
}

func (s *session) startKeyring() {
	if s.opts.keyring == "none" {
		return
	}
	daemon := s.unlockedKeyring()
	if s.opts.keyring == "locked" {
		s.lock(daemon)
	}
}

// lock has the keyring locked: it exists now, and a daemon that is not told the
// password leaves it so.
func (s *session) lock(daemon *programs.Process) {
	s.t.Helper()
	_ = syscall.Kill(-daemon.PID(), syscall.SIGTERM)
	s.waitName("org.freedesktop.secrets", false)
	s.spawn("gnome-keyring-daemon", "--components=secrets", "--foreground")
	s.waitName("org.freedesktop.secrets", true)
}

func (s *session) unlockedKeyring() *programs.Process {
	cmd := exec.Command("gnome-keyring-daemon", "--unlock", "--components=secrets", "--foreground")
	cmd.Stdin = strings.NewReader("rigpass")
	s.running["gnome-keyring"] = s.run(cmd)
	s.waitName("org.freedesktop.secrets", true)
	return s.running["gnome-keyring"]
}

// waitName waits until a bus name has an owner, or has none.
func (s *session) waitName(name string, want bool) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%s on the bus: %v", name, want), func() error {
		var has bool
		if err := s.bus.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, name).Store(&has); err != nil {
			return err
		}
		if has != want {
			return errors.New("not yet")
		}
		return nil
	})
}

// eventually asks again until try succeeds; other processes tell no events.
func (s *session) eventually(what string, try func() error) {
	s.t.Helper()
	wait := patience
	if s.opts.tidy {
		wait *= 4 // nothing is judged by the clock there, and a fine screen takes long to look at
	}
	end := time.Now().Add(wait)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			s.shot("failed")
			s.t.Fatalf("%s: %v\n%s", what, err, s.appLog())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// tool runs a program of the session to its end and returns what it printed.
func (s *session) tool(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = s.env
	out, err := programs.Output(cmd)
	return string(out), err
}

func (s *session) mustTool(name string, args ...string) string {
	s.t.Helper()
	return programs.Got(s.tool(name, args...))(s.t)
}

// screen is what the display shows now.
func (s *session) screen() image.Image {
	s.t.Helper()
	return programs.Got(png.Decode(strings.NewReader(s.mustTool("import", "-window", "root", "png:-"))))(s.t)
}

// shot keeps a screenshot for people to look at.
func (s *session) shot(name string) {
	dir := os.Getenv("PORCHLIGHT_SHOTS")
	if dir == "" || s.opts.noDisplay {
		return
	}
	file := filepath.Join(dir, strings.ReplaceAll(s.t.Name(), "/", "-")+"-"+name+".png")
	if out, err := s.tool("import", "-window", "root", file); err != nil {
		s.t.Logf("no screenshot: %v %s", err, out)
	}
}

func (s *session) write(file, text string) {
	s.t.Helper()
	programs.Must(s.t, os.WriteFile(file, []byte(text), 0o600))
}

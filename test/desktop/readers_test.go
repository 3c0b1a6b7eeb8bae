//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"porchlight/test/programs"
)

// menuReader builds the program that reads a menu with the library of GTK's panels.
var menuReader = sync.OnceValues(func() (program []byte, err error) {
	dir, err := os.MkdirTemp("", "porch")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "menureader")
	out, err := exec.Command("sh", "-c", `gcc -o "$0" testdata/menureader.c $(pkg-config --cflags --libs gtk+-3.0) -l:libdbusmenu-gtk3.so.4`, file).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("build the reader of menus: %w: %s", err, out)
	}
	return os.ReadFile(file)
})

// reader is a panel that draws nothing but the tray's menu.
type reader struct {
	*programs.Process
	*session
	asks  io.Writer
	asked int
}

// reads starts one, which does not wait for anything.
func (s *session) reads() *reader {
	s.t.Helper()
	file := filepath.Join(s.dir, "bin/menureader")
	if _, err := os.Stat(file); err != nil {
		made := programs.Got(menuReader())(s.t)
		syscall.ForkLock.RLock() // a program of another test that starts would hold it open, and it could not be run
		err := os.WriteFile(file, made, 0o755)
		syscall.ForkLock.RUnlock()
		programs.Must(s.t, err)
	}
	items := s.trayItems()
	if len(items) != 1 {
		s.t.Fatalf("%d tray items", len(items))
	}
	name, _, _ := strings.Cut(items[0], "/")
	cmd := exec.Command(file, name, "/StatusNotifierItem/menu")
	asks := programs.Got(cmd.StdinPipe())(s.t)
	return &reader{Process: s.run(cmd), session: s, asks: asks}
}

// draws waits until it draws what the menu is by the protocol.
func (r *reader) draws() {
	r.t.Helper()
	r.eventually("the whole menu is drawn", func() error {
		_, root, err := r.trayMenu()
		if err != nil {
			return err
		}
		r.asked++
		fmt.Fprintf(r.asks, "%d\n", r.asked)
		found := r.says(r.Process, fmt.Sprintf(`(?s)(?:reads|=%d)\n(.*)=%d\n`, r.asked-1, r.asked))[1]
		if want := strings.Join(append(root.lines(0), ""), "\n"); found != want {
			return errors.New("drawn is\n" + found + "\nand the menu is\n" + want)
		}
		return nil
	})
}

// Weakness: answers to a panel overtook one another, and it dropped for good what was below
// lines that it did not know yet; the app's cure was to wait, by its own clock.
// Checked: many panels, held at many moments and for long or short, while requests come and
// go in a menu of sixty apps, draw every line of it, and have nothing to warn of.
func TestEveryLineReachesEveryPanel(t *testing.T) {
	t.Parallel()
	panels, longest := 6, time.Second
	if os.Getenv("PORCHLIGHT_SOAK") != "" {
		panels, longest = 20, 5*time.Second
	}
	s := newSession(t, desk{})
	p := s.launch()
	s.trayShows("No app is on", true)
	port := webApp(t, "any")
	for i := range 60 {
		name := fmt.Sprintf("app-%d", i)
		p.publish(name, "App "+name, port)
		programs.Got(p.ownerTier().Approve(t.Context(), name))(t)
	}
	var all []*reader
	for range panels {
		all = append(all, s.reads())
	}
	var held sync.WaitGroup
	for i, r := range all {
		held.Go(func() {
			time.Sleep(time.Duration(i) * 10 * time.Millisecond) // the moments differ
			r.Signal(syscall.SIGSTOP)
			time.Sleep(longest/50 + time.Duration(i)*longest/time.Duration(panels))
			r.Signal(syscall.SIGCONT)
		})
	}
	for i := range 12 {
		name := fmt.Sprintf("asks-%d", i)
		p.publish(name, "Asks "+name, port)
		all = append(all, s.reads()) // at every one of its moments
		switch i % 3 {
		case 0:
			programs.Got(p.ownerTier().Approve(t.Context(), name))(t)
		case 1:
			programs.Got(p.ownerTier().Deny(t.Context(), name))(t)
		}
	}
	held.Wait()
	p.isStill("asks-11", "pending")
	s.trayShows("Asks asks-2 wants an address > Approve", true)
	for _, r := range all {
		r.draws()
		if said := r.Stderr(); strings.Contains(said, "LIBDBUSMENU") {
			t.Errorf("a panel warns:\n%s", said)
		}
	}
}

// A left click opens the menu where a panel knows that the icon is one, and the window where
// it calls Activate all the same, as LXQt's does.
func TestActivateOpensTheWindow(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	s.launch()
	items := s.trayItems()
	if len(items) != 1 {
		t.Fatalf("%d tray items", len(items))
	}
	name, path, _ := strings.Cut(items[0], "/")
	icon := s.bus.Object(name, dbus.ObjectPath("/"+path))
	if isMenu := programs.Got(icon.GetProperty("org.kde.StatusNotifierItem.ItemIsMenu"))(t); isMenu.Value() != true {
		t.Errorf("ItemIsMenu is %v", isMenu)
	}
	s.windowShows(false)
	programs.Must(t, icon.Call("org.kde.StatusNotifierItem.Activate", 0, int32(1016), int32(16)).Err)
	s.windowShows(true)
}

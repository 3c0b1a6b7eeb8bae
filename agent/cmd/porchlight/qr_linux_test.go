package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"porchlight/test/programs"
)

// TestQR: on a terminal an address is drawn for a telephone's camera, unless it leads
// the telephone to itself.
func TestQR(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for address, want := range map[string]bool{
		"https://notes.maya.porch.example":                 true,
		"https://notes.localhost.example":                  true,
		"https://notes.maya.localhost:8443":                false,
		"https://control.maya.localhost:8443/invite/abcde": false,
		"https://localhost:8443":                           false,
	} {
		end, screen := pty(t)
		(&terminal{out: screen}).qr(address)
		fmt.Fprint(screen, "END")
		said := ""
		for b := make([]byte, 4096); !strings.Contains(said, "END"); {
			n, err := end.Read(b)
			if err != nil && err != io.EOF {
				t.Fatal(err)
			}
			said += string(b[:n])
		}
		if drawn := strings.Contains(said, "█"); drawn != want {
			t.Errorf("%s: drawn %v, want %v", address, drawn, want)
		}
	}
}

// pty is a terminal of 80 columns, and the end at which what it shows is read.
func pty(t *testing.T) (end, screen *os.File) {
	t.Helper()
	end, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	programs.Must(t, err)
	t.Cleanup(func() { _ = end.Close() })
	fd := int(end.Fd())
	programs.Must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n := programs.Got(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	if screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	programs.Must(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 80}))
	return end, screen
}

//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"image"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// What is denied stays off and quiet; what is paused waits for the owner.
func TestW3_DenyAndPauseFromTheTray(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	s.trayShows("No app is on", true)

	t.Run("deny", func(t *testing.T) {
		port := webApp(t, "notes")
		p.publish("notes", "Notes", port)
		s.notified("Notes wants an address")
		s.trayClick("Notes wants an address > Deny")
		p.is("notes", "")
		s.trayShows("Notes wants an address", false)
		s.trayShows("Waiting for you", false)
		before := s.timesTold("Notes wants an address")
		// It asks again: in the menu, not in the owner's face. The next app's
		// notification says that there was time enough for one.
		p.publish("notes", "Notes", port)
		s.trayShows("Notes wants an address", true)
		p.publish("photos", "Photos", webApp(t, "photos"))
		s.notified("Photos wants an address")
		if after := s.timesTold("Notes wants an address"); after != before {
			t.Errorf("the owner was told %d times of a denied app, %d times before it asked again", after, before)
		}
	})

	t.Run("approve for today", func(t *testing.T) {
		p.publish("wiki", "Wiki", webApp(t, "wiki"))
		s.trayClick("Wiki wants an address > Approve for today, until midnight")
		p.is("wiki", "live")
		s.notified("Wiki is on until midnight")
		s.trayShows("Wiki: until today > Approved until today", true)
		// An end that comes says so, and the app is as one that was revoked.
		programs.Got(p.ownerTier().ApproveSeen(t.Context(), "wiki", agentapi.Approval{Until: "1s"}))(t)
		s.notified("An approval has ended")
		p.is("wiki", "")
	})

	t.Run("pause", func(t *testing.T) {
		port := webApp(t, "diary")
		p.publish("diary", "Diary", port)
		s.trayClick("Diary wants an address > Approve")
		p.is("diary", "live")
		s.trayClick("Diary > Pause")
		s.trayShows("Diary: paused > Resume", true)
		// The app asks again, and is answered that it is live; it stays paused.
		p.publish("diary", "Diary", port)
		p.is("diary", "live")
		s.trayShows("Diary: paused > Open: not while paused", true)
		s.trayClick("Diary: paused > Resume")
		s.trayShows("Diary > Open", true)
	})
}

// The window that has nothing to show yet teaches a command that works.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	s.trayClick("Open Porchlight")
	s.windowShows(true)
	var spot image.Point
	s.eventually("the window shows a command", func() (err error) {
		var ok bool
		if spot, ok = find(s.screen(), sunken, image.Rect(290, 34, 1100, 700), 300, 4); !ok {
			err = errors.New("nothing to copy is there")
		}
		return err
	})
	s.shot("empty")
	s.mouse(spot, "1")
	s.keys("Tab", "Return") // from the command to its Copy
	var command string
	s.eventually("the command is on the clipboard", func() (err error) {
		command, err = s.tool("xclip", "-o", "-selection", "clipboard")
		if err == nil && !strings.HasPrefix(command, "porchlight ") {
			err = fmt.Errorf("there is %q", command)
		}
		return err
	})

	bin := programs.Got(filepath.Abs("../../bin"))(t)
	shell := exec.Command("sh", "-c", "PATH="+bin+":$PATH "+command)
	shell.Env = s.env
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%s%v", command, out, err)
	}
	s.request()
	p.approveInWindow("notes")
	s.answered()
}

//go:build rig

package desktop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/export"
	"porchlight/test/programs"
)

// The window's Export asks where to, writes what the command line writes, for
// the owner's eyes only, and nothing when the owner rather not.
func TestExportInTheWindow(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launchDriven()
	p.approved("notes", "Notes <b>&amp;", webApp(t, "notes"))
	p.member("bob@example.com", "Notes <b>&amp;")
	// Shown in full, whether or not the service reads markup.
	if body := s.notified("An invitation was accepted", "bob@example.com opened Notes ‹b›＆amp; for the first time"); !strings.Contains(body, "can open Notes ‹b›＆amp;.") && !strings.HasPrefix(body, "At ") {
		t.Errorf("the notification says %q", body)
	}
	p.openWindow()
	p.view("Settings")
	p.press("#more summary")

	p.pressButton("Export…")
	s.dialog("Export what Porchlight keeps", true)
	s.keys("Escape")
	s.dialog("Export what Porchlight keeps", false)

	file := filepath.Join(s.dir, "home", "mine.json")
	p.pressButton("Export…")
	s.dialog("Export what Porchlight keeps", true)
	s.shot("asks")
	s.keys("ctrl+a")
	s.mustTool("xdotool", "type", "--delay", "20", file)
	s.keys("Return")
	s.dialog("Export what Porchlight keeps", false)
	var raw []byte
	s.eventually("the export is there", func() (err error) {
		raw, err = os.ReadFile(file)
		return err
	})
	s.shot("saved")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	var saved, printed export.Document
	programs.Must(t, json.Unmarshal(raw, &saved))
	p.ask(&printed, "export")
	if saved.Account.Host == "" || len(saved.Apps) != 1 || len(saved.People) != 2 || len(saved.Activity) == 0 {
		t.Errorf("saved\n%s", raw)
	}
	saved.ExportedAt, printed.ExportedAt = time.Time{}, time.Time{}
	if !reflect.DeepEqual(saved, printed) {
		t.Errorf("the window saved\n%+v\nthe command line printed\n%+v", saved, printed)
	}
	if strings.Contains(string(raw), strings.TrimSpace(s.ownerSecret())) {
		t.Error("the owner secret is in the export")
	}
	others, err := filepath.Glob(filepath.Join(s.dir, "home", "*.json"))
	if err != nil || len(others) != 1 {
		t.Errorf("exports: %v, %v", others, err)
	}

	// Quitting waits for no answer.
	p.pressButton("Export…")
	s.dialog("Export what Porchlight keeps", true)
	s.trayClick("Quit Porchlight")
	s.eventually("the program has ended", func() error {
		if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid)); err == nil && !strings.Contains(string(raw), ") Z ") {
			return errors.New("it runs")
		}
		return nil
	})
}

// dialog waits until a window of that title is on the screen and has the keyboard, or
// none is.
func (s *session) dialog(title string, want bool) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%s: %v", title, want), func() error {
		ids, err := s.search("--name", title)
		if err == nil && (len(ids) > 0) != want {
			err = errors.New("not so yet")
		}
		if err != nil || !want {
			return err
		}
		keyboard, err := s.tool("xdotool", "getwindowfocus")
		if err == nil && !slices.Contains(ids, strings.TrimSpace(keyboard)) {
			err = fmt.Errorf("the keyboard is with %s and not with %v", keyboard, ids)
		}
		return err
	})
}

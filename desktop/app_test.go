package desktop

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/desktop/menu"
	"porchlight/desktop/page"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
	"porchlight/test/programs"
)

func TestCommandLine(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PORCHLIGHT_DATA": "/env", "PORCHLIGHT_API": "127.0.0.1:1"}
	getenv := func(k string) string { return env[k] }
	var out bytes.Buffer
	read := func(args ...string) (startOptions, error) { return parse(args, getenv, &out) }
	o, err := read("--api", "127.0.0.1:2", "--hidden", "--panel=light")
	if err != nil || o.data != "/env" || o.api != "127.0.0.1:2" || !o.hidden || o.panel != "light" || o.secretFile {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse(nil, func(string) string { return "" }, nil); err != nil || o.api != agentapi.DefaultAddress || o.data == "" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := read("--http", "go"); err != nil || o.http == "" {
		t.Errorf("of before 0.1.0: %+v, %v", o, err)
	}
	for _, args := range [][]string{{"--nonsense"}, {"show"}, {"--panel", "pink"}, {"--data", ""}} {
		if _, err := read(args...); err == nil || errors.Is(err, flag.ErrHelp) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := read("--nonsense"); err.Error() != "there is no option --nonsense" {
		t.Error(err)
	}
	if _, err := read("--help"); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
	for _, option := range []string{"--data", "--api", "--https", "--hidden", "--panel", "--secret-file", "--version", "PORCHLIGHT_DATA"} {
		if !strings.Contains(out.String(), option) {
			t.Errorf("the usage does not name %s", option)
		}
	}
	manual := programs.Got(os.ReadFile("../build/linux/porchlight-desktop.1"))(t)
	plain := strings.NewReplacer(`\-`, "-", `\fB`, "", `\fI`, "", `\fR`, "").Replace(string(manual))
	for _, option := range regexp.MustCompile(`--[a-z-]+(=[a-z]+)?|\boutline\b`).FindAllString(usage, -1) {
		if !strings.Contains(plain, option) {
			t.Errorf("the manual does not name %s", option)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := settingsIn(t, dir)
	programs.Must(t, s.change(func(v *settingsValues) { v.LastNotice, v.Panel = 7, "light" }))
	info, err := os.Stat(filepath.Join(dir, settingsFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	again, err := openSettings(dir)
	if err != nil || again.get() != (settingsValues{Panel: "light", LastNotice: 7}) {
		t.Errorf("%+v, %v", again, err)
	}
}

// lateWindow is made while somebody asks for it.
type lateWindow struct {
	page.Window
	made  func()
	shown int
}

func (w *lateWindow) Show() bool {
	if made := w.made; made != nil {
		w.made = nil
		made()
		return false // as it was when it was asked
	}
	w.shown++
	return true
}

// A wish for the window that comes while it is being made is not lost, and carried out once.
func TestWishWhileTheWindowIsMade(t *testing.T) {
	t.Parallel()
	w := &lateWindow{}
	a := &app{window: w, wantWindow: make(chan struct{}, 1)}
	w.made = a.showWished
	a.showWindow()
	a.showWished()
	if w.shown != 1 {
		t.Errorf("shown %d times", w.shown)
	}
	a.showWindow()
	a.showWished()
	if w.shown != 2 {
		t.Errorf("shown %d times after another wish", w.shown)
	}
}

// While the agent does not answer, the menu says so, and a click is answered at
// once instead of waiting.
func TestWhileTheAgentIsSilent(t *testing.T) {
	t.Parallel()
	a := &app{state: owner.Everyday(), known: true, client: &agentapi.Client{}, unanswered: true}
	s, known := a.snapshot()
	if m := menu.Draw(menu.Picture{OwnerState: s, Now: owner.Noon}); !known || m.Icon != menu.IconTrouble || m.Lines[0].Text != "Porchlight is not answering." {
		t.Errorf("%s, %q", m.Icon, m.Lines[0].Text)
	}
	if _, err := a.carryOut(t.Context(), verbs.Action{Verb: verbs.Revoke, Name: "notes"}); !errors.Is(err, errSilent) {
		t.Errorf("revoking: %v", err)
	}
}

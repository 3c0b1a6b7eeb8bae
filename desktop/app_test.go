package desktop

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/desktop/menu"
	"porchlight/desktop/notes"
	"porchlight/desktop/page"
	"porchlight/desktop/runner"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

// approving is an agent that keeps what it was asked to approve.
type approving struct {
	runner.Client
	name   string
	seen   agentapi.Seen
	status agentapi.Status
	url    string
	health agentapi.AppHealth
}

func (c *approving) ApproveSeen(_ context.Context, name string, seen agentapi.Seen) (agentapi.Approved, error) {
	c.name, c.seen = name, seen
	return agentapi.Approved{Publication: agentapi.Publication{Status: c.status, URL: c.url}, AppHealth: &c.health}, nil
}

// The owner approves what they saw: all of it is sent, and the agent compares it.
func TestApprovingSendsWhatWasSeen(t *testing.T) {
	t.Parallel()
	asked := owner.Pending("notes", "Notes", 3000)
	act := verbs.ApproveOf(asked)
	other := asked
	other.Listener.Program = "sshd" // by now, which is the agent's to judge
	agent := &approving{}
	a := &app{client: agent, state: owner.State(other), known: true}
	if _, err := a.carryOut(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	if agent.name != "notes" || !reflect.DeepEqual(agent.seen, agentapi.SeenOf(asked)) || *agent.seen.Program != "python3" || *agent.seen.User != "maya" {
		t.Errorf("approved %s as %+v", agent.name, agent.seen)
	}
}

// An approval is answered by the address, who can open it, and what comes next.
func TestApprovedIsTold(t *testing.T) {
	t.Parallel()
	agent := &approving{status: agentapi.StatusPending}
	a := &app{client: agent, known: true}
	act := verbs.ApproveOf(owner.Pending("notes", "Notes", 3000))
	if n, err := a.carryOut(t.Context(), act); err != nil || n.Title != "Notes is approved" || !strings.Contains(n.Body, "once this computer is connected") {
		t.Errorf("%+v, %v", n, err)
	}
	agent.status = agentapi.StatusLive
	agent.url = "https://notes.maya.localhost"
	if n, _ := a.carryOut(t.Context(), act); n.Body != "notes.maya.localhost" {
		t.Errorf("nothing was seen listening, and the note says %q", n.Body)
	}
	heard := owner.Pending("notes", "Notes", 3000)
	heard.Listener.Program = "node"
	a.state = owner.State(heard)
	n, err := a.carryOut(t.Context(), act)
	if err != nil || n.Title != "Notes is on" || n.Body != "notes.maya.localhost. Only you can open it." {
		t.Errorf("%+v, %v", n, err)
	}
	next := []verbs.Action{{Verb: verbs.Open, Name: "notes"}, {Verb: verbs.Copy, Name: "notes", Text: agent.url}, {Verb: verbs.Show, View: verbs.ViewInvite, Name: "notes"}}
	if got := actionsOf(n); !slices.Equal(got, next) {
		t.Errorf("the next steps are %+v", got)
	}
	shared := owner.Live("notes", "Notes", 3000)
	shared.OpenToCount = 1
	a.state = owner.State(shared)
	if n, _ := a.carryOut(t.Context(), act); n.Body != "notes.maya.localhost" {
		t.Errorf("others may open it, and the note says %q", n.Body)
	}
	open := owner.Live("notes", "Notes", 3000)
	open.InNetwork = agentapi.InNetwork{Network: true, NetworkDetail: "Other computers can open port 3000."}
	a.state = owner.State(open)
	if n, _ := a.carryOut(t.Context(), act); n.Body != "notes.maya.localhost\nOther computers can open port 3000." {
		t.Errorf("the network opens it, and the note says %q", n.Body)
	}
}

// actionsOf is what a note's buttons do.
func actionsOf(n notes.Note) (all []verbs.Action) {
	for _, b := range n.Buttons {
		all = append(all, b.Do)
	}
	return all
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PORCHLIGHT_DATA": "/env", "PORCHLIGHT_API": "127.0.0.1:1"}
	getenv := func(k string) string { return env[k] }
	o, err := parse([]string{"--api", "127.0.0.1:2", "--hidden", "--panel=light"}, getenv, nil)
	if err != nil || o.data != "/env" || o.api != "127.0.0.1:2" || !o.hidden || o.panel != "light" || o.secretFile {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse(nil, func(string) string { return "" }, nil); err != nil || o.api != agentapi.DefaultAddress || o.data == "" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"--nonsense"}, {"show"}, {"--panel", "pink"}, {"--http", "nginx"}, {"--data", ""}} {
		if _, err := parse(args, getenv, nil); err == nil || errors.Is(err, flag.ErrHelp) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := parse([]string{"--nonsense"}, getenv, nil); err.Error() != "there is no option --nonsense" {
		t.Error(err)
	}
	var out bytes.Buffer
	if _, err := parse([]string{"--help"}, getenv, &out); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
	for _, option := range []string{"--data", "--api", "--https", "--hidden", "--panel", "--secret-file", "--http", "--version", "PORCHLIGHT_DATA"} {
		if !strings.Contains(out.String(), option) {
			t.Errorf("the usage does not name %s", option)
		}
	}
	manual, err := os.ReadFile("../build/linux/porchlight-desktop.1")
	if err != nil {
		t.Fatal(err)
	}
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
	s, err := openSettings(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.change(func(v *settingsValues) { v.LastNotice, v.Panel = 7, "light" }); err != nil {
		t.Fatal(err)
	}
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
	a := &app{state: owner.Everyday(), known: true, client: struct{ runner.Client }{}, unanswered: true}
	s, known := a.snapshot()
	if m := menu.Draw(menu.Picture{OwnerState: s, Now: owner.Noon}); !known || m.Icon != menu.IconTrouble || m.Lines[0].Text != "Porchlight is not answering." {
		t.Errorf("%s, %q", m.Icon, m.Lines[0].Text)
	}
	if _, err := a.carryOut(t.Context(), verbs.Action{Verb: verbs.Revoke, Name: "notes"}); !errors.Is(err, errSilent) {
		t.Errorf("revoking: %v", err)
	}
}

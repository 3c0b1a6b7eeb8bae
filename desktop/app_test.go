package desktop

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/assets"
)

// approving is an agent that keeps what it was asked to approve.
type approving struct {
	client
	name  string
	seen  agentapi.Seen
	calls int
}

func (c *approving) ApproveSeen(_ context.Context, name string, seen agentapi.Seen) (agentapi.Publication, error) {
	c.name, c.seen = name, seen
	c.calls++
	return agentapi.Publication{Status: agentapi.StatusLive}, nil
}

// Which program it is may be found only after the request was shown: the owner
// approved what was asked for by that user.
func TestApprovingBeforeTheProgramWasFound(t *testing.T) {
	t.Parallel()
	asked := pending("notes", "Notes", 3000)
	shown := asked
	shown.Listener.PID, shown.Listener.Program = 0, ""
	act := lineOf(t, []line{requestOf(shown, "maya.localhost")}, "Notes wants an address", "Approve").do
	other := asked
	other.Listener.User = "root"
	for now, want := range map[*agentapi.OwnerApp]error{&asked: nil, &shown: nil, &other: errOtherProgram} {
		a := &app{client: &approving{}, state: stateOf(*now), known: true}
		if _, err := a.carryOut(t.Context(), act); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", now.Listener, err, want)
		}
	}
}

// The owner approves what they saw: the agent is told the label and the port,
// and another program on that port is found here.
func TestApprovingWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	asked := pending("notes", "Notes", 3000)
	act := lineOf(t, []line{requestOf(asked, "maya.localhost")}, "Notes wants an address", "Approve").do
	change := func(fn func(*agentapi.OwnerApp)) agentapi.OwnerApp { a := asked; fn(&a); return a }
	for name, c := range map[string]struct {
		now  []agentapi.OwnerApp
		want error
	}{
		"as seen":       {[]agentapi.OwnerApp{live("a", "A", 1), asked}, nil},
		"restarted":     {[]agentapi.OwnerApp{change(func(a *agentapi.OwnerApp) { a.Listener.PID++ })}, nil},
		"other program": {[]agentapi.OwnerApp{change(func(a *agentapi.OwnerApp) { a.Listener.Program = "sshd" })}, errOtherProgram},
		"other user":    {[]agentapi.OwnerApp{change(func(a *agentapi.OwnerApp) { a.Listener.User = "root" })}, errOtherProgram},
		// The agent's to judge, which knows better what is asked for by now.
		"other port": {[]agentapi.OwnerApp{change(func(a *agentapi.OwnerApp) { a.LocalPort, a.Listener.Program = 22, "sshd" })}, nil},
		"withdrawn":  {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := &approving{}
			a := &app{client: agent, state: stateOf(c.now...), known: true}
			if _, err := a.carryOut(t.Context(), act); !errors.Is(err, c.want) {
				t.Errorf("carryOut = %v, want %v", err, c.want)
			}
			if c.want != nil {
				if agent.calls != 0 {
					t.Error("the agent was asked all the same")
				}
			} else if agent.name != "notes" || agent.seen != (agentapi.Seen{Label: "Notes", LocalPort: 3000}) {
				t.Errorf("approved %s as %+v", agent.name, agent.seen)
			}
		})
	}
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
	for _, args := range [][]string{{"--nonsense"}, {"show"}, {"--panel", "pink"}, {"--data", ""}} {
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
	for _, option := range []string{"--data", "--api", "--https", "--hidden", "--panel", "--secret-file", "--version", "PORCHLIGHT_DATA"} {
		if !strings.Contains(out.String(), option) {
			t.Errorf("the usage does not name %s", option)
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
	if err != nil || again.get() != (settingsValues{Panel: "light", LastNotice: 7}) || again.get().panel() != assets.OnLight {
		t.Errorf("%+v, %v", again, err)
	}
	// Half a file, or somebody's edit, is no reason not to start.
	if err := os.WriteFile(filepath.Join(dir, settingsFile), []byte(`{"panel": "li`), 0o600); err != nil {
		t.Fatal(err)
	}
	if broken, err := openSettings(dir); err != nil || broken.get() != (settingsValues{}) {
		t.Errorf("%+v, %v", broken, err)
	}
}

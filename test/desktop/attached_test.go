//go:build rig

package desktop

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"porchlight/test/programs"
)

// stoppedFor is how long the agent is stopped: long enough to be noticed, and in
// the long runs as long as the issue says.
func stoppedFor() time.Duration {
	if os.Getenv("PORCHLIGHT_SOAK") != "" {
		return 30 * time.Second
	}
	return 6 * time.Second
}

// attached is the app beside an agent of another process.
func attached(t *testing.T) (*program, *programs.Process) {
	t.Helper()
	s := newSession(t, desk{})
	data, api := filepath.Join(s.dir, "data"), programs.FreeAddress(t)
	agent := s.run(exec.Command(cli(t), "agent", "--local", "--data", data, "--api", api, "--https", programs.FreeAddress(t)))
	s.eventually("the agent is up", func() error {
		_, err := os.Stat(filepath.Join(data, "agent.json"))
		return err
	})
	p := s.begin("--api", api)
	p.api = api
	p.serving()
	s.trayShows("No app is on, in another process", true)
	return p, agent
}

// menuTime asks for the menu as a panel does that is about to open it.
func (s *session) menuTime() (lines []string, took time.Duration) {
	s.t.Helper()
	began := time.Now()
	_, root, err := s.trayMenu()
	programs.Must(s.t, err)
	return root.lines(0), time.Since(began) / 2 // which reads it twice
}

// The agent's process is stopped: the menu opens as ever, says that nothing
// answers, and answers a click at once; when the process goes on, so does the
// menu.
func TestAttachedAgentIsStopped(t *testing.T) {
	t.Parallel()
	p, agent := attached(t)
	p.approved("notes", "Notes", webApp(t, "notes"))
	p.trayShows("Notes > Pause", true)

	agent.Signal(syscall.SIGSTOP)
	stopped := time.Now()
	p.trayShows("Porchlight is not answering.", true)
	t.Logf("stopped to \"not answering\" in the menu: %d ms", time.Since(stopped).Milliseconds())
	for time.Since(stopped) < stoppedFor() {
		lines, took := p.menuTime()
		if !slices.Contains(lines, "Notes") || lines[0] != "Porchlight is not answering." {
			t.Fatalf("the menu is\n%s", strings.Join(lines, "\n"))
		}
		if took > 200*time.Millisecond {
			t.Logf("reading the menu took %v", took)
		}
		time.Sleep(200 * time.Millisecond) // it has to stay stopped for a while
	}
	_, took := p.menuTime()
	t.Logf("reading the menu of a stopped agent: %v", took.Round(100*time.Microsecond))
	clicked := p.trayClick("Notes > Pause")
	p.noteSays("The app was not paused", "not answering")
	t.Logf("click to the notification that nothing answers: %d ms", time.Since(clicked).Milliseconds())

	agent.Signal(syscall.SIGCONT)
	p.trayShows("On. Nobody here now, in another process", true)
	p.trayClick("Notes > Pause")
	p.trayShows("Notes: paused > Resume", true)
}

// The agent of the other process ends: the app serves itself, and who asks is
// asked about as before.
func TestAttachedAgentEnds(t *testing.T) {
	t.Parallel()
	p, agent := attached(t)
	agent.Signal(syscall.SIGTERM)
	p.eventually("the app itself serves", func() error {
		_, answer, err := p.call("GET", "/engine/info", nil)
		if err == nil && answer["mode"] != "desktop" {
			err = errors.New("mode is " + answer["mode"].(string))
		}
		return err
	})
	p.trayShows("No app is on", true)
	p.approved("notes", "Notes", webApp(t, "notes"))
}

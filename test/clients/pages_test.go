//go:build clients

package clients

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"porchlight/test/programs"
)

// page is one whose shell blocks a reader types from top to bottom. Every block is
// run as it is written, but for what stands in for a public name, port or
// directory, and those that are named here with the reason why they are not.
type page struct {
	file string
	// here puts what is on this computer in the place of what the page names.
	here []string
	// serves are the beginnings of blocks that run until they are stopped, with what
	// they print once they serve.
	serves map[string]string
	// ends are the beginnings of blocks that are stopped as soon as they have printed
	// something, which is no failure of theirs.
	ends map[string]string
	// stops are the beginnings of blocks before which those that serve are stopped.
	stops []string
	// says are the beginnings of blocks, and what they have to print.
	says map[string]string
	// left are the beginnings of blocks that are not run, and why.
	left map[string]string
}

// fenced is a block of a page, with its language. One of a shell names it, or none.
var fenced = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// TestReadmeRuns types README's lines.
func TestReadmeRuns(t *testing.T) {
	t.Parallel()
	h := emptyHouse(t)
	app := strconv.Itoa(programs.FreePort(t))
	page{
		file:   "../../README.md",
		here:   []string{"http.server --bind 127.0.0.1 8000", "http.server --bind 127.0.0.1 " + app, "--port 8000", "--port " + app, "share 8000", "share " + app},
		serves: map[string]string{"python3 -m http.server": "Serving HTTP"},
		ends:   map[string]string{"porchlight share": "What visitors ask of it follows"},
		says: map[string]string{
			"porchlight publish": "https://notes." + h.account.Host, "porchlight people": "Notes", "porchlight doctor": "Notes answers on port",
		},
		left: map[string]string{
			"make run":       "the programs that it builds are the ones under test, and make test is what runs this",
			"porchlight run": "it ends as the program that it runs does; the tests of agent/cmd/porchlight try it",
		},
	}.typed(t, h)
}

// TestOperatingRuns types docs/operating.md's blocks: a server of our own domain on
// a free port, whose certificate nobody has to order.
func TestOperatingRuns(t *testing.T) {
	t.Parallel()
	h := &house{bin: binDir(t), env: append(os.Environ(), "PORCHLIGHT_DATA=")}
	dir, listen := t.TempDir(), "127.0.0.1:"+strconv.Itoa(programs.FreePort(t))
	page{
		file: "../../docs/operating.md",
		here: []string{
			"/etc/porchlight", filepath.Join(dir, "etc"), "/var/lib/porchlight", filepath.Join(dir, "data"), "porch.example", "porch.localhost", "control.example", "control.localhost",
			"--listen :443", "--listen " + listen, "--metrics 127.0.0.1:9100", "--metrics 127.0.0.1:" + strconv.Itoa(programs.FreePort(t)),
			"upgrade --check --config /etc/porchlight/control.yaml", "upgrade --check --data " + filepath.Join(dir, "data"), // the file is empty here
			"--tls acme", "--tls internal", "import rows --postgres URL", "import rows --data " + filepath.Join(dir, "moved"),
		},
		serves: map[string]string{"porchlight-control serve --data": "control plane at"},
		stops:  []string{"porchlight-control export rows"},
		left: map[string]string{
			"export PORCHLIGHT_CONTROL_POSTGRES":               "it names a database elsewhere, by TLS; test/nodes runs servers on a PostgreSQL of its own",
			"sudo apt update && sudo apt install ./porchlight": "test/package installs the package on a clean Debian",
			"sudo ufw":                        "it changes the machine's firewall",
			"sudo systemctl enable":           "as below: no service manager runs where the tests do",
			"curl --retry 10":                 "the service does not run here; the tests of control/cmd/porchlight-control ask /readyz",
			"sudo porchlight-control account": "the same account is added below, to the server that runs there",
			"systemctl enable":                "no service manager runs where the tests do; TestUnit has systemd-analyze verify the unit",
		},
	}.typed(t, h)
}

// TestUnit has systemd look at the unit, with the program under test in its place.
func TestUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("this test needs systemd-analyze, of the package systemd")
	}
	unit := strings.ReplaceAll(read(t, "../../build/linux/porchlight-control.service"), "/usr/bin/", binDir(t)+"/")
	file := filepath.Join(t.TempDir(), "porchlight-control.service")
	if err := os.WriteFile(file, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil || strings.Contains(string(out), filepath.Base(file)) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRemoteClientRuns types docs/remote-client.md's blocks but for its programs,
// which TestReaders runs.
func TestRemoteClientRuns(t *testing.T) {
	t.Parallel()
	h := emptyHouse(t)
	page{
		file: "../../docs/remote-client.md",
		here: []string{"~/.local/share/porchlight", h.data, "--data DIR", "--data " + filepath.Join(h.data, "control")},
		left: map[string]string{
			"export AUTH_URL":     "TestReaders gives each program a client of its own in these variables",
			"mkdir -p reader-go":  "it fetches a module from the internet; TestReaders runs the program with the version of go.mod",
			"mkdir -p reader-js":  "it fetches a package from the internet; TestReaders runs the program with that of package-lock.json",
			"sudo apt install":    "build/setup.sh test has installed it; TestReaders runs the program, and has the person answer",
			"bash reader.sh":      "TestReaders runs it, and has the person answer",
			"#!/usr/bin/env bash": "it is the program itself",
			"curl --user":         "it asks for an app password; test/e2e/passwords.test.mjs makes one in a browser and has curl use it",
		},
	}.typed(t, h)
}

// typed runs a page from top to bottom, in a directory of its own.
func (p page) typed(t *testing.T, h *house) {
	t.Helper()
	here := strings.NewReplacer(p.here...)
	blocks := fenced.FindAllStringSubmatch(read(t, p.file), -1)
	dir, left := t.TempDir(), map[string]bool{}
	stop := func() {}
	defer func() { stop() }()
	for _, m := range blocks {
		block := here.Replace(m[2])
		switch m[1] {
		case "", "sh", "bash":
		case "yaml":
			h.takesConfig(t, dir, block)
			continue
		default: // programs and answers; other tests hold these
			continue
		}
		if why, out := begins(p.left, m[2]); out {
			left[why] = true
			continue
		}
		for _, s := range p.stops {
			if strings.HasPrefix(m[2], s) {
				stop()
				stop = func() {}
			}
		}
		if ready, runs := begins(p.serves, m[2]); runs {
			end := h.serve(t, dir, block, ready)
			stop = func() { _ = end() } // stopped by a signal, which some call a failure
			continue
		}
		if ready, runs := begins(p.ends, m[2]); runs {
			if err := h.serve(t, dir, block, ready)(); err != nil {
				t.Errorf("%s: %v after\n%s", p.file, err, block)
			}
			continue
		}
		cmd := h.shell(t, dir, block)
		out, err := cmd.Output()
		if want, _ := begins(p.says, m[2]); err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%s: %v, %q is not in\n%s\nof\n%s", p.file, err, want, out, block)
		}
	}
	for beginning, why := range p.left {
		if !left[why] {
			t.Errorf("%s: no block begins with %q", p.file, beginning)
		}
	}
}

func begins(beginnings map[string]string, block string) (string, bool) {
	for beginning, what := range beginnings {
		if strings.HasPrefix(block, beginning) {
			return what, true
		}
	}
	return "", false
}

// takesConfig has a command read a block as its configuration: a setting nobody
// knows would be refused.
func (h *house) takesConfig(t *testing.T, dir, block string) {
	t.Helper()
	file := filepath.Join(dir, "control.yaml")
	if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := h.shell(t, dir, "porchlight-control account list --data none --config "+file)
	cmd.Stderr = nil // what is not there is none of this test's
	if _, err := cmd.Output(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() == 2 {
			t.Errorf("%v: %s of\n%s", err, exit.Stderr, block)
		}
	}
}

// shell is a block as somebody types it who has the programs on their path.
func (h *house) shell(t *testing.T, dir, block string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -eu -o pipefail\n"+block)
	cmd.Dir, cmd.Stderr = dir, t.Output()
	cmd.Env = append(h.env, "PATH="+h.bin+string(filepath.ListSeparator)+"/usr/bin:/bin", "PYTHONUNBUFFERED=1")
	return cmd
}

// serve runs a block until stop, which returns how it ended, and returns when it serves.
func (h *house) serve(t *testing.T, dir, block, ready string) (stop func() error) {
	t.Helper()
	cmd := h.shell(t, dir, "exec "+block)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for !strings.Contains(lines.Text(), ready) {
		if !lines.Scan() {
			t.Fatalf("%v before it printed %q: %s", cmd.Wait(), ready, block)
		}
	}
	go io.Copy(io.Discard, out)
	return func() error {
		cmd.Process.Signal(syscall.SIGTERM)
		return cmd.Wait()
	}
}

// binDir is the directory of the programs under test.
func binDir(t testing.TB) string {
	bin, err := filepath.Abs(cmp.Or(os.Getenv("PORCHLIGHT_PROGRAMS"), "../../bin"))
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

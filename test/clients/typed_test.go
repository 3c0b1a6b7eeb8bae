//go:build clients

package clients

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	// part is the heading of the one part that is typed, and but of the one that is not;
	// empty for the whole page.
	part, but string
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
	// config is where a reader writes the page's settings; empty for nowhere, and then a
	// command reads them.
	config string
	// unit is the beginning of the block, of those left, by which systemd starts the
	// service; here it is started by hand.
	unit string
}

// fenced is a block of a page, with its language. One of a shell names it, or none.
var fenced = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// typed runs a page from top to bottom, in a directory of its own.
func (p page) typed(t *testing.T, h *house) {
	t.Helper()
	here := strings.NewReplacer(p.here...)
	blocks := fenced.FindAllStringSubmatch(p.text(t), -1)
	dir, left := t.TempDir(), map[string]bool{}
	stop := func() {}
	defer func() { stop() }()
	for _, m := range blocks {
		block := here.Replace(m[2])
		if beginning, why := begins(p.left, m[2]); beginning != "" {
			left[beginning] = true
			notTyped(t, p.file, m[2], why)
			if beginning == p.unit {
				end := h.serve(t, dir, byTheUnit(t, here), "control plane at")
				stop = func() { _ = end() } // as below
			}
			continue
		}
		switch m[1] {
		case "", "sh", "bash":
		case "yaml":
			h.takesConfig(t, dir, block, p.config)
			continue
		case "ini", "json", "go", "js", "python": // programs and answers; other tests hold these
			continue
		default:
			t.Errorf("%s: this block is neither typed, nor is there a reason why not:\n%s", p.file, m[2])
			continue
		}
		for _, s := range p.stops {
			if strings.HasPrefix(m[2], s) {
				stop()
				stop = func() {}
			}
		}
		if beginning, ready := begins(p.serves, m[2]); beginning != "" {
			end := h.serve(t, dir, block, ready)
			stop = func() { _ = end() } // stopped by a signal, which some call a failure
			continue
		}
		if beginning, ready := begins(p.ends, m[2]); beginning != "" {
			if err := h.serve(t, dir, block, ready)(); err != nil {
				t.Errorf("%s: %v after\n%s", p.file, err, block)
			}
			continue
		}
		cmd := h.shell(t, dir, block)
		out, err := cmd.Output()
		if _, want := begins(p.says, m[2]); err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%s: %v, %q is not in\n%s\nof\n%s", p.file, err, want, out, block)
		}
	}
	for beginning := range p.left {
		if !left[beginning] {
			t.Errorf("%s: no block begins with %q", p.file, beginning)
		}
	}
}

// begins says with which of these a block begins, if with one.
func begins(beginnings map[string]string, block string) (beginning, what string) {
	for beginning, what := range beginnings {
		if strings.HasPrefix(block, beginning) {
			return beginning, what
		}
	}
	return "", ""
}

// text is what is typed of a page.
func (p page) text(t *testing.T) string {
	t.Helper()
	all := read(t, p.file)
	heading := cmp.Or(p.part, p.but)
	if heading == "" {
		return all
	}
	before, part, found := strings.Cut(all, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no part %q", p.file, heading)
	}
	part, after, _ := strings.Cut(part, "\n## ")
	if p.part != "" {
		return part
	}
	return before + "\n## " + after
}

// notTyped puts a block into the list of those that are not typed, which run.sh prints.
func notTyped(t *testing.T, file, block, why string) {
	t.Helper()
	first, _, _ := strings.Cut(block, "\n")
	line := fmt.Sprintf("%s: not typed: %s: %s", filepath.Base(file), first, why)
	t.Log(line)
	list := os.Getenv("PORCHLIGHT_NOT_TYPED")
	if list == "" {
		return
	}
	f, err := os.OpenFile(list, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

// byTheUnit is the command of the service, with its credentials laid out as systemd does:
// a file by its name, and each file of a directory by the names of both.
func byTheUnit(t *testing.T, here *strings.Replacer) (command string) {
	t.Helper()
	unit, credentials := read(t, "../../build/linux/porchlight-control.service"), t.TempDir()
	for line := range strings.Lines(unit) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "ExecStart":
			command = strings.TrimPrefix(value, "/usr/bin/")
		case "LoadCredential":
			name, path, _ := strings.Cut(here.Replace(value), ":")
			lay(t, path, filepath.Join(credentials, name))
		}
	}
	return "env CREDENTIALS_DIRECTORY=" + credentials + " " + strings.ReplaceAll(command, "${CREDENTIALS_DIRECTORY}", credentials)
}

// lay copies a file, or each file of a directory.
func lay(t *testing.T, from, to string) {
	t.Helper()
	if files, err := os.ReadDir(from); err == nil {
		for _, f := range files {
			lay(t, filepath.Join(from, f.Name()), to+"_"+f.Name())
		}
		return
	}
	programs.Must(t, os.WriteFile(to, []byte(read(t, from)), 0o600))
}

// takesConfig writes a block to the file of the settings, or has a command read it as
// those: a setting nobody knows would be refused.
func (h *house) takesConfig(t *testing.T, dir, block, config string) {
	t.Helper()
	file := cmp.Or(config, filepath.Join(dir, "control.yaml"))
	programs.Must(t, os.WriteFile(file, []byte(block), 0o600))
	if config != "" {
		return // who serves by it reads it
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

// sudo runs the one command for which a page needs it and that needs nobody's rights here.
const sudo = `sudo() { [ "$1" = porchlight-control ] && "$@"; }`

// shell is a block as somebody types it who has the programs on their path.
func (h *house) shell(t *testing.T, dir, block string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -eu -o pipefail\n"+sudo+"\n"+block)
	cmd.Dir, cmd.Stderr = dir, t.Output()
	cmd.Env = append(h.env, "PATH="+binDir(t)+string(filepath.ListSeparator)+"/usr/bin:/bin", "PYTHONUNBUFFERED=1")
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
	programs.Must(t, err)
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

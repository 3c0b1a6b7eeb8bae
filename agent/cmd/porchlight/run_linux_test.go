package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/test/programs"
)

// runs is `porchlight run shop` around a line, where $APP is a server that is how.
func runs(t *testing.T, dir, how, line string) *process {
	t.Helper()
	self := programs.Got(os.Executable())(t)
	p := inProcess(t, dir, "run", "shop", "--", "/bin/sh", "-c", line)
	p.Env = append(p.Env, "APP="+self, "PORCHLIGHT_TEST_SERVER="+how)
	return p
}

// Around a program that picks its own port, or one started by it that takes the port it
// was given: the port is found, the page is there, what is typed reaches the program,
// and Ctrl-C ends everything.
func TestRun(t *testing.T) {
	t.Parallel()
	for how, line := range map[string]string{
		"own":  `read x; echo "typed $x, serves $$."; exec $APP`,
		"port": `read x; $APP & echo "typed $x, serves $!."; wait`,
	} {
		s := startAgent(t)
		p := runs(t, s.dir, how, line).onTerminal()
		programs.Got(p.tty.WriteString("hello\n"))(t)
		p.says("typed hello")
		p.says("Ctrl-C takes it off")
		if page := s.browse(onceLink.FindString(p.output())); page != "the first page" {
			t.Errorf("%s: the page is %q", how, page)
		}
		serves := regexp.MustCompile(`serves (\d+)\.`).FindStringSubmatch(p.output())
		if serves == nil {
			t.Fatal(p.output())
		}
		p.ctrlC()
		p.ends(130)
		s.hasNoApps()
		pid, _ := strconv.Atoi(serves[1])
		programs.Eventually(t, how+": the program has ended", func() bool { return !procinfo.Runs(pid) })
	}
}

// The end of the program is that of the command, with its code, and what it left
// running ends, too.
func TestRunEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	p := runs(t, s.dir, "own", `exit 7`).onPipes()
	p.ends(7)
	p.says("ended before it listened on any port")
	p = runs(t, s.dir, "own", `$APP & echo "left $!"; exit 3`).onPipes()
	p.ends(3)
	left := regexp.MustCompile(`left (\d+)`).FindStringSubmatch(p.output())
	if left == nil {
		t.Fatal(p.output())
	}
	pid, _ := strconv.Atoi(left[1])
	if procinfo.Runs(pid) {
		t.Errorf("what the program left behind still runs")
	}
	p = runs(t, s.dir, "own", `$APP & echo "mine $!"; wait; exit 5`).onPipes()
	p.says("Ctrl-C takes it off")
	mine := regexp.MustCompile(`mine (\d+)`).FindStringSubmatch(p.output())
	pid, _ = strconv.Atoi(mine[1])
	programs.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	p.ends(5)
	s.hasNoApps()
	for program, why := range map[string]string{"/there/is/no/such/program": "no such file or directory", "nosuchprogram": "there is no program of this name on your PATH"} {
		if code, _, said := s.run("run", "shop", "--", program); code != 1 || !strings.HasSuffix(said, program+" could not be started: "+why+"\n") {
			t.Errorf("%d %s", code, said)
		}
	}
}

// A program that ignores Ctrl-C gets SIGTERM after a time, and one that ignores that as
// well is killed, at once by another Ctrl-C. Its app is off its address before.
func TestRunEndsAStubbornProgram(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	p := runs(t, s.dir, "deaf", `exec $APP`).onPipes()
	p.says("Ctrl-C takes it off")
	p.signal(syscall.SIGINT)
	p.says("is off its address")
	p.ends(128 + int(syscall.SIGTERM))
	p = runs(t, s.dir, "stubborn", `exec $APP`).onTerminal()
	p.says("Ctrl-C takes it off")
	p.ctrlC()
	p.says("is off its address")
	p.ctrlC()
	p.ends(128 + int(syscall.SIGKILL))
	p.says("is off its address")
}

// Where no agent runs, run brings one along, and kill -9 leaves an app that the owner
// sees and ends.
func TestRunFromNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	p := inProcess(t, dir, "run", "shop", "--api", "127.0.0.1:0", "--", "/proc/self/exe")
	p.Args[len(p.Args)-1] = p.Path
	p.Env = append(p.Env, "PORCHLIGHT_TEST_SERVER=port")
	p.onPipes()
	p.says("Ctrl-C takes it off")
	p.says("https://shop.")
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	s := startAgentIn(t, dir)
	var apps []listedApp
	s.json(&apps, "apps")
	if len(apps) != 1 || apps[0].Status != agentapi.StatusLive || apps[0].Shared == nil || apps[0].Shared.PID != p.Process.Pid {
		t.Errorf("left: %+v", apps)
	}
	programs.Eventually(t, "what was shared is put back", func() bool { return strings.Contains(s.ok("unshare", "shop"), "as it was before") })
	if s.json(&apps, "apps"); len(apps) != 0 {
		t.Errorf("afterwards: %+v", apps)
	}
}

// What a program leaves behind and ends before it is forgotten, and does not fill the
// system's table of processes for as long as the program runs.
func TestRunBuriesOrphans(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	p := runs(t, s.dir, "own", `for i in 1 2 3 4 5; do (/bin/sh -c 'echo orphan $$; exec sleep 0.2' &); done; exec $APP`).onPipes()
	p.says("Ctrl-C takes it off")
	programs.Eventually(t, "five orphans", func() bool { return strings.Count(p.output(), "orphan ") == 5 })
	for _, orphan := range regexp.MustCompile(`orphan (\d+)`).FindAllStringSubmatch(p.output(), -1) {
		programs.Eventually(t, orphan[0]+" is forgotten", func() bool {
			_, err := os.Stat("/proc/" + orphan[1])
			return os.IsNotExist(err)
		})
	}
	p.signal(syscall.SIGINT)
	p.ends(128 + int(syscall.SIGINT))
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// Another user of the computer is told whose Porchlight it is, by every command, and
// never to start a second one.
func TestAnotherUsersAgent(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	s := startAgent(t)
	self := programs.Got(os.Executable())(t)
	raw := programs.Got(os.ReadFile(self))(t)
	home := programs.Got(os.MkdirTemp("", "porchlight-other"))(t)
	t.Cleanup(func() { os.RemoveAll(home) })
	program := filepath.Join(home, "porchlight")
	syscall.ForkLock.RLock() // a program of another test that starts would hold it open, and it could not be run
	err := os.WriteFile(program, raw, 0o755)
	syscall.ForkLock.RUnlock()
	programs.Must(t, err)
	programs.Must(t, os.Chown(home, 65534, 65534))
	for _, line := range []string{"apps", "approve notes", "people", "export " + filepath.Join(home, "out.zip"), "doctor", "status", "listening", "connect https://control.example", "trust", "agent --local"} {
		cmd := exec.Command(program, append(strings.Fields(line), "--api", s.state().API)...)
		cmd.Env = []string{asProgram + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH")}
		cmd.Dir = home
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), "Porchlight runs on this computer as root, who decides here: ask them.") || strings.Contains(string(out), "agent --local") || strings.Contains(string(out), "beside it") {
			t.Errorf("%s says:\n%s", line, out)
		}
		if code := cmd.ProcessState.ExitCode(); (code == 0) != (line == "status") || code == commandline.ExitNotRunning {
			t.Errorf("%s ends with %d", line, code)
		}
	}
}

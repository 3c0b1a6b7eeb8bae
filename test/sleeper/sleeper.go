// Package sleeper has processes for tests that watch processes.
package sleeper

import (
	"os/exec"
	"runtime"
)

// Command is a program that does nothing for ten minutes, to be started and
// killed. Windows has none that only sleeps; its ping waits a second after each
// of its packets to itself.
func Command() *exec.Cmd {
	if runtime.GOOS == "windows" {
		return exec.Command("ping", "-n", "600", "127.0.0.1")
	}
	return exec.Command("sleep", "600")
}

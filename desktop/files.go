package desktop

import (
	"context"
	"os/exec"
	"runtime"

	"porchlight/internal/words"
)

// showFiles opens a directory in the file manager.
func showFiles(_ context.Context, dir string) error {
	program := "xdg-open"
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program = "explorer"
	}
	cmd := exec.Command(program, dir)
	if err := cmd.Start(); err != nil {
		return words.Errorf("No file manager could be opened. The directory is %s.", dir)
	}
	go cmd.Wait() // it outlives the click; Explorer's exit code means nothing
	return nil
}

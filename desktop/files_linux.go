package desktop

import (
	"context"
	"os/exec"

	"porchlight/internal/words"
)

// showFiles opens a directory in the file manager.
func showFiles(_ context.Context, dir string) error {
	cmd := exec.Command("xdg-open", dir)
	if err := cmd.Start(); err != nil {
		return words.Errorf("No file manager could be opened. The directory is %s.", dir)
	}
	go cmd.Wait() // it outlives the click
	return nil
}

package desktop

import (
	"context"
	"fmt"
	"os/exec"
)

// showFiles opens a directory in the file manager.
func showFiles(_ context.Context, dir string) error {
	cmd := exec.Command("xdg-open", dir)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("No file manager could be opened. The directory is %s.", dir)
	}
	go cmd.Wait() // it outlives the click
	return nil
}

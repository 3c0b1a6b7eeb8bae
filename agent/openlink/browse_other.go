//go:build !linux

package openlink

import (
	"context"
	"os/exec"
	"runtime"

	"porchlight/internal/words"
)

// browse opens a path or address in the owner's browser.
func browse(_ context.Context, what string) error {
	program, args := "/usr/bin/open", []string{what}
	if runtime.GOOS == "windows" {
		program, args = "rundll32.exe", []string{"url.dll,FileProtocolHandler", what}
	}
	if err := exec.Command(program, args...).Run(); err != nil {
		return words.Errorf("No browser could be opened: %w", err)
	}
	return nil
}

// direct is false: browsers of these systems read the owner's files.
func direct(context.Context) bool { return false }

// Browser is empty: what the owner's browser is called is not looked up here.
func Browser(context.Context) string { return "" }

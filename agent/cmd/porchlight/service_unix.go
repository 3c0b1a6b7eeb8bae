//go:build !windows

package main

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
)

// userService is the unit that the packages bring.
const userService = "porchlight.service"

// stopService ends the agent that starts at login.
func stopService(ctx context.Context, _ string) { service(ctx, "stop") }

// disableService has it start no more.
func disableService(ctx context.Context) { service(ctx, "disable", "--now") }

// service has systemd do something about the agent; it is no error where there is no systemd, or
// no such service.
func service(ctx context.Context, what ...string) {
	if runtime.GOOS == "linux" {
		_ = exec.CommandContext(ctx, "systemctl", slices.Concat([]string{"--user"}, what, []string{userService})...).Run()
	}
}

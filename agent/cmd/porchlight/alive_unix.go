//go:build unix

package main

import (
	"errors"
	"syscall"
)

// alive says whether there is a process of a number.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return pid > 0 && (err == nil || errors.Is(err, syscall.EPERM))
}

//go:build !linux

// Package shortcut hears of keys pressed anywhere on the desktop, on Linux.
package shortcut

import (
	"context"
	"errors"
)

// Offered says whether the desktop has such a portal: none does here.
func Offered() bool { return false }

// Listen returns an error.
func Listen(context.Context, string, func(string), func()) error { return errors.ErrUnsupported }

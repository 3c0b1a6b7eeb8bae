// Package socket reads from and writes to sockets that do not block, without telling
// Go's scheduler of the system call where that is possible (Linux), cuts them off, and
// says by an error whether somebody else has an address.
//
// The scheduler is told of a call so that a thread which waits in it leaves its work to
// another one. None of these waits. Told of each, the scheduler's watchdog looks every
// 20 µs whether one is stuck, and where other processes cut calls short it hands work
// from thread to thread: a fifth of what a small request costs.
package socket

import (
	"io"
	"time"
)

// Resting is what Rest returns.
type Resting interface {
	io.ReadWriter
	SetWriteDeadline(until time.Time) error
}

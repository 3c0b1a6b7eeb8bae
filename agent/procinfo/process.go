package procinfo

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// ErrGone is returned by Open for an id that no process has.
var ErrGone = errors.New("there is no such process")

// Process is a process as far as the system tells; what it does not tell is
// zero. User is known more often than the rest: sockets name it also where another
// user's processes are hidden.
type Process struct {
	PID     int
	Program string // base name of the executable, fit to be shown
	User    string // login name, or the numeric id of a user without one
	UserID  string // the system's own id of User: a uid, or a SID on Windows
}

// CallerUser is whose process made a TCP connection between two addresses of this
// computer: from is its own end, to the server's. PID and Program stay empty. It is
// quick enough to be asked on the way of every request.
func CallerUser(from, to netip.AddrPort) Process {
	s := CallerSocket(from, to)
	return Process{User: s.User, UserID: s.UserID}
}

// Calls says whether the process pid of this computer may call itself by the id
// claimed: it has that id, or has it inside the container or sandbox that it
// runs in.
func Calls(pid, claimed int) bool { return pid > 0 && (pid == claimed || insideID(pid) == claimed) }

// Handle holds on to one process, with what the system offers for that: it never means
// another one that was given the same id later.
type Handle interface {
	// Ended says whether the process has ended.
	Ended() bool
	// Wait blocks until the process has ended and returns nil, or until ctx ends and
	// returns its error. It is called once.
	Wait(ctx context.Context) error
	// Close lets go of the process.
	Close()
}

// MaxPID is the largest process id that this system can give.
const MaxPID = maxPID

// Open takes hold of the process with this id, or fails with ErrGone. One that
// has ended and that its parent has not looked after yet is gone.
func Open(pid int) (Handle, error) {
	if pid < 1 || pid > maxPID {
		return nil, ErrGone
	}
	h, err := open(pid)
	if err != nil {
		return nil, err
	}
	if h.Ended() {
		h.Close()
		return nil, ErrGone
	}
	return h, nil
}

// lookEvery is how often a process is looked at where the system cannot tell a
// goroutine by itself.
const lookEvery = 500 * time.Millisecond

// waitLooking waits by looking again and again.
func waitLooking(ctx context.Context, ended func() bool) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for !ended() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

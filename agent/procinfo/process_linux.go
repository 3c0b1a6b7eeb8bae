package procinfo

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxPID is PID_MAX_LIMIT of the kernel.
const maxPID = 1 << 22

// insideID is the id a process has in the innermost namespace it is in; 0 when
// the kernel does not say.
func insideID(pid int) int {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			ids = strings.TrimSpace(ids)
			inside, _ := strconv.Atoi(ids[strings.LastIndexByte(ids, '\t')+1:]) // 0 of what is no number
			return inside
		}
	}
	return 0
}

// open prefers a pidfd, which the kernel makes readable when the process ends
// and which the Go runtime waits for without a thread. Where there is none to
// be had (an old kernel, a sandbox, too many open files) the time the process
// was born tells it from another one with its id.
func open(pid int) (Handle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, ErrGone
	case err == nil:
		if err := unix.SetNonblock(fd, true); err == nil {
			return pidfd{os.NewFile(uintptr(fd), "pidfd")}, nil
		}
		unix.Close(fd)
	}
	birth, ok := born(pid)
	if !ok {
		return nil, ErrGone
	}
	return birthday{pid, birth}, nil
}

type pidfd struct{ file *os.File }

func (p pidfd) Ended() bool {
	ended := true // as one that is closed
	_ = onDescriptor(p.file, func(fd int) error { ended = readable(uintptr(fd)); return nil })
	return ended
}

func readable(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLIN != 0
}

func (p pidfd) Wait(ctx context.Context) error {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = raw.Read(readable)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return waitLooking(ctx, p.Ended) // the runtime could not take the descriptor
}

func (p pidfd) Close() { p.file.Close() }

// birthday is a process by its id and the time it was born.
type birthday struct {
	pid  int
	born string
}

func (b birthday) Ended() bool {
	now, ok := born(b.pid)
	return !ok || now != b.born
}

func (b birthday) Wait(ctx context.Context) error { return waitLooking(ctx, b.Ended) }
func (birthday) Close()                           {}

// born reads when a process was started, in clock ticks since the computer was;
// false for one that has ended.
func born(pid int) (string, bool) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		// A /proc that hides other users' processes still answers kill.
		if errors.Is(err, fs.ErrNotExist) && errors.Is(unix.Kill(pid, 0), unix.EPERM) {
			return "hidden", true
		}
		return "", false
	}
	return birthOf(raw)
}

func birthOf(stat []byte) (string, bool) {
	f, ok := fieldsOf(stat)
	if !ok {
		return "", false
	}
	return f[startTime], true
}

const state, parent, startTime = 0, 1, 19 // fields of a line, counted after the name

// fieldsOf parses a line of /proc/PID/stat, false for one that has ended; the name, in
// parentheses, may contain anything, parentheses too.
func fieldsOf(stat []byte) (f []string, ok bool) {
	end := bytes.LastIndexByte(stat, ')')
	f = strings.Fields(string(stat[end+1:]))
	return f, end >= 0 && len(f) > startTime && f[state] != "Z" && f[state] != "X"
}

package relay

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pipeSize is how much a pipe takes in at a time, in bytes.
	pipeSize = 1 << 20
	// sparePipes are kept for the next flows, where they take some 10 KiB each.
	sparePipes = 16
	// spliceWindow bounds how long a bulk flow that fell silent keeps its pipe.
	spliceWindow = 2 * time.Second
	// bulkMark is how many bytes a flow in a hurry waits for; it is woken for less only
	// at the end of bulkPatience, and then is in no hurry until so many came at once.
	bulkMark     = 128 << 10
	bulkPatience = 2 * time.Millisecond
	// passedMark is bulkMark for a flow between two nodes, in whose way are two relays
	// to be woken.
	passedMark = 512 << 10
	// nearBy is a round trip within which pacing is of no use.
	nearBy = time.Millisecond
)

// pipe is where the kernel keeps bytes on their way between two connections. It is
// empty whenever no flow has it.
type pipe struct{ r, w int }

// ourPipes are those of this process. Others of the same user shall find room for
// theirs: half of what the kernel gives a user is ours. The kernel is asked at the first
// use: every program of ours has this package, and most never relay.
var ourPipes = sync.OnceValue(func() *pipePool { return &pipePool{most: pipeRoom()} })

// pipePool is made with most alone.
type pipePool struct {
	most int

	mu   sync.Mutex // protects what follows
	out  int
	free []pipe
}

func pipeRoom() int {
	text, err := os.ReadFile("/proc/sys/fs/pipe-user-pages-soft")
	pages, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || err2 != nil {
		pages = 16384 // as kernels have it
	}
	if pages == 0 { // no limit
		return 1024
	}
	return max(1, pages/2/(pipeSize/os.Getpagesize()))
}

// get returns no pipe when too many are out, or the kernel has no room for one that
// is worth having.
func (p *pipePool) get() (pipe, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == p.most {
		return pipe{}, false
	}
	if n := len(p.free); n > 0 {
		taken := p.free[n-1]
		p.free = p.free[:n-1]
		p.out++
		return taken, true
	}
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return pipe{}, false
	}
	made := pipe{fds[0], fds[1]}
	if _, err := unix.FcntlInt(uintptr(made.w), unix.F_SETPIPE_SZ, pipeSize); err != nil {
		made.close()
		return pipe{}, false
	}
	p.out++
	return made, true
}

// put takes a pipe back; one that is not empty is closed.
func (p *pipePool) put(used pipe, empty bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out--
	if empty && len(p.free) < sparePipes {
		p.free = append(p.free, used)
		return
	}
	used.close()
}

func (p pipe) close() {
	_ = unix.Close(p.r) // bytes in it are lost with their flow
	_ = unix.Close(p.w)
}

// splice lets the kernel move the bytes while they are many, and returns with
// done false once they are few: a pipe is taken meanwhile, which a silent flow
// must not keep. Other connections than TCP's are copied.
func (d *direction) splice() (done bool, _ error) {
	dst, ok1 := d.dst.(*net.TCPConn)
	src, ok2 := d.src.(*net.TCPConn)
	if !ok1 || !ok2 {
		return false, nil
	}
	pipes := d.flow.pipes
	if pipes == nil {
		pipes = ourPipes()
	}
	s, ok := newSplicer(dst, src, pipes)
	if !ok {
		return false, nil
	}
	if d.flow.passed {
		s.many = passedMark
	}
	d.flow.setSplicing(d.way, true)
	n, err := s.run()
	s.close()
	d.flow.setSplicing(d.way, false)
	d.bytes += n
	if err == io.EOF {
		return true, nil
	}
	if err == nil {
		err = d.rest()
	}
	return err != nil, err
}

// splicer has the kernel move the bytes of one direction through a pipe. While they
// come fast the kernel wakes it for many at a time only, which is most of what moving
// them costs.
type splicer struct {
	from     *net.TCPConn
	src, dst syscall.RawConn
	pipes    *pipePool
	pipe     pipe
	inPipe   int
	many     int
	hurry    bool  // woken for so many bytes
	n        int   // moved by the last call
	err      error // of it
	// What is done with a connection, bound once so that moving allocates nothing.
	wait, empty func(fd uintptr) bool
	try         func(fd uintptr)
}

// newSplicer returns none where no pipe is to be had: then bytes are copied.
func newSplicer(dst, src *net.TCPConn, pipes *pipePool) (*splicer, bool) {
	taken, ok := pipes.get()
	if !ok {
		return nil, false
	}
	s := &splicer{from: src, pipes: pipes, pipe: taken, many: bulkMark}
	var err1, err2 error
	s.src, err1 = src.SyscallConn()
	s.dst, err2 = dst.SyscallConn()
	if err1 != nil || err2 != nil {
		s.close()
		return nil, false
	}
	_ = s.dst.Control(unpace) // a connection that has ended says so soon enough
	s.try = func(fd uintptr) { s.n, s.err = move(int(fd), s.pipe.w, pipeSize) }
	s.wait = func(fd uintptr) bool {
		s.try(fd)
		return s.err != syscall.EAGAIN
	}
	s.empty = func(fd uintptr) bool {
		for s.inPipe > 0 {
			if s.n, s.err = move(s.pipe.r, int(fd), s.inPipe); s.err != nil {
				return s.err != syscall.EAGAIN
			}
			s.inPipe -= s.n
		}
		return true
	}
	return s, true
}

// unpace changes the congestion control of a bulk flow to somebody near by, where the
// system's is BBR: to cubic, which is Linux's own, or to reno where cubic is not allowed.
// BBR paces: it sets a timer for every 64 KiB. Between machines of one place, or within
// one machine, that costs up to as much as all the rest. A flow that goes a long way, over
// which packets get lost, keeps BBR, which is chosen for such ways. Errors change nothing.
func unpace(fd uintptr) {
	if control, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil || !strings.HasPrefix(control, "bbr") {
		return
	}
	info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || time.Duration(info.Min_rtt)*time.Microsecond >= nearBy {
		return
	}
	for _, control := range nearByControls {
		if unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, control) == nil {
			return
		}
	}
}

// nearByControls do not pace. Without privileges cubic may be chosen only where
// net.ipv4.tcp_allowed_congestion_control names it, and reno always.
var nearByControls = []string{"cubic", "reno"}

// move is one call of splice. Neither connections nor pipes block, so that the
// scheduler need not be told of the call; telling it of each, some hundred µs long,
// has it hand this thread's work to another one again and again.
func move(from, to, most int) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(most), unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// run moves bytes until they are few, and returns how many it moved. The error is
// io.EOF at the end of the stream.
func (s *splicer) run() (moved int64, err error) {
	if err := s.wakeForEach(); err != nil {
		return 0, err
	}
	for since := int64(0); ; {
		err := s.more()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if !s.hurry {
				if moved-since < bulkReads*copyBuffer {
					return moved, nil
				}
			}
			since = moved
			err = s.wakeForEach() // what there is will be taken next
		case err == nil:
			n := s.inPipe
			err = s.pump()
			moved += int64(n - s.inPipe)
			if err == nil && !s.hurry && n >= s.many {
				s.hurry, err = true, s.mark(s.many)
			}
		}
		if err != nil {
			return moved, err
		}
	}
}

// wakeForEach has the flow woken for every byte, until few have come for a while.
func (s *splicer) wakeForEach() error {
	if s.hurry {
		s.hurry = false
		if err := s.mark(1); err != nil {
			return err
		}
	}
	return s.from.SetReadDeadline(time.Now().Add(spliceWindow))
}

// mark says how many bytes have to be there to wake a reader.
func (s *splicer) mark(bytes int) error {
	var failed error
	err := s.src.Control(func(fd uintptr) {
		failed = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes))
	})
	return errors.Join(err, failed)
}

// more fills the pipe with what is there, or waits for it. A deadline that strikes
// loses nothing, as it is only looked at while the pipe is empty.
func (s *splicer) more() error {
	err := s.src.Control(s.try)
	if err == nil && s.err == syscall.EAGAIN {
		if s.hurry {
			err = s.from.SetReadDeadline(time.Now().Add(bulkPatience))
		}
		if err == nil {
			err = s.src.Read(s.wait)
		}
	}
	switch {
	case err != nil:
		return err
	case s.err != nil:
		return os.NewSyscallError("splice", s.err)
	case s.n == 0:
		return io.EOF
	}
	s.inPipe = s.n
	return nil
}

// pump empties the pipe.
func (s *splicer) pump() error {
	if err := s.dst.Write(s.empty); err != nil {
		return err
	}
	return os.NewSyscallError("splice", s.err)
}

func (s *splicer) close() {
	if s.hurry {
		_ = s.mark(1) // a connection that has ended needs none
	}
	s.pipes.put(s.pipe, s.inPipe == 0)
}

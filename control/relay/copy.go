package relay

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/relay/peers"
	"porchlight/internal/socket"
)

const (
	copyBuffer = 32 << 10 // bytes
	// bulkReads full buffers in a row make a flow a bulk flow.
	bulkReads = 8
	// halfClosedIdle is how long the other side of a flow that one side has ended may
	// say nothing; it is noticed within as long again.
	halfClosedIdle = 2 * time.Minute
)

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// stream is one end of a flow.
type stream interface {
	net.Conn
	CloseWrite() error
}

// flow is a visitor joined to a data connection. Each direction runs in a
// goroutine of its own; the end of one direction is passed on as a half-close,
// an error of either ends both at once.
type flow struct {
	visitor, agent stream
	ticket         tunnelwire.Ticket // of the data connection; none where agent is another node
	// ended is called once, after both directions have ended, with the bytes
	// each has carried.
	ended func(toAgent, toVisitor int64)
	// ways are the two directions, in memory of the flow's: a goroutine of each waits for as
	// long as the visitor stays, and whatever it has on its stack is there as often.
	ways [2]direction
	// passed says that one end is another node.
	passed bool
	// pipes are where bulk flows take one; nil for those of this process.
	pipes *pipePool

	halfClosed atomic.Bool // one direction has ended in order

	mu        sync.Mutex // protects what follows
	finished  int        // directions that have ended, in whichever way
	aborted   bool
	whole     [2]bool  // ended in order, by toAgent and toVisitor
	splicing  [2]bool  // the kernel moves the bytes, and the direction sets deadlines
	delivered [2]int64 // bytes
}

const (
	toAgent = iota
	toVisitor
)

// start begins both directions and returns.
func (f *flow) start() {
	ends := [2]stream{toAgent: f.agent, toVisitor: f.visitor}
	for way := range f.ways {
		d := &f.ways[way]
		d.flow, d.way, d.dst, d.src = f, way, ends[way], ends[1-way]
		if d.from == nil {
			d.from = newReader(d.src)
		}
		if tcp, ok := d.dst.(*net.TCPConn); ok {
			d.to = socket.Rest(tcp)
		} else {
			d.to = d.dst
		}
	}
	go f.ways[toAgent].run()
	go f.ways[toVisitor].run()
}

// end notes how a direction has ended.
func (f *flow) end(d *direction, err error) {
	if err == nil && !f.otherIsOver() { // else dst has nothing more to say, and closing it says the same
		err = d.dst.CloseWrite()
	}
	f.mu.Lock()
	f.delivered[d.way] += d.bytes
	f.whole[d.way] = err == nil
	f.finished++
	last := f.finished == 2
	f.mu.Unlock()
	switch {
	case err != nil:
		f.abort()
	case !last:
		f.halfClosed.Store(true)
		f.bound(1-d.way, d.dst)
	}
	if last {
		_ = f.visitor.Close()
		_ = f.agent.Close()
		f.ended(f.delivered[toAgent], f.delivered[toVisitor])
	}
}

// bound gives a direction, which reads from src, a deadline: it may go on for as long as
// it says something. One that splices is woken to set its own, as it may be waiting for a
// moment only, for many bytes at once.
func (f *flow) bound(way int, src stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	until := time.Now()
	if !f.splicing[way] {
		until = until.Add(halfClosedIdle)
	}
	_ = src.SetReadDeadline(until)
}

// setSplicing says for a direction whether it splices; the deadline that it is given
// meanwhile is its own to set right.
func (f *flow) setSplicing(way int, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.splicing[way] = is
}

// otherIsOver is for a direction that is not.
func (f *flow) otherIsOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.finished == 1
}

// abort ends both directions, the visitor's side first. A side that has not been sent
// everything gets a reset, so that it does not take what it has for the whole; a side that
// has may still be reading it, which a reset would cut short.
func (f *flow) abort() {
	f.mu.Lock()
	whole, again := f.whole, f.aborted
	f.aborted = true
	f.mu.Unlock()
	if !again {
		abort(f.visitor, whole[toVisitor])
		abort(f.agent, whole[toAgent])
	}
}

// abort ends one side. One that could be cut is closed by the last of the directions, both
// of which are woken by it.
func abort(s stream, whole bool) {
	if tcp, ok := s.(*net.TCPConn); ok && !whole {
		if socket.Cut(tcp) {
			return
		}
		_ = tcp.SetLinger(0)
	}
	if peer, ok := s.(*peers.Conn); ok && !whole {
		peer.Reset()
	}
	_ = s.Close()
}

// direction copies one way.
type direction struct {
	dst, src stream
	to       io.Writer // dst
	from     reader    // of src; one that is there before start has read the first answer
	flow     *flow
	way      int
	bytes    int64
	rested   int64     // bytes when the last silence began
	until    time.Time // when a silence has lasted too long, in a flow that one side has ended
}

// reader reads into a buffer of copyBuffers, which it has only while there is
// something to read where that can be done. With n above zero the buffer is the
// caller's to put back.
type reader interface {
	read() (buf *[copyBuffer]byte, n int, err error)
}

func newReader(s stream) reader {
	if tcp, ok := s.(*net.TCPConn); ok {
		return newPatientReader(tcp)
	}
	return &holdingReader{s}
}

// holdingReader keeps its buffer while it waits.
type holdingReader struct{ conn net.Conn }

func (r *holdingReader) read() (*[copyBuffer]byte, int, error) {
	buf := copyBuffers.Get().(*[copyBuffer]byte)
	n, err := r.conn.Read(buf[:])
	if n == 0 {
		copyBuffers.Put(buf)
		return nil, 0, err
	}
	return buf, n, err
}

func (d *direction) run() { d.flow.end(d, d.copy()) }

// copy returns nil at the end of src's stream. What it and those that it calls keep on the
// stack for a small flow is to fit the smallest that Go gives, 2 KiB.
func (d *direction) copy() error {
	full := 0
	for {
		buf, n, err := d.from.read()
		if n > 0 {
			d.bytes += int64(n)
			_, werr := d.to.Write(buf[:n])
			copyBuffers.Put(buf)
			if werr != nil {
				return werr
			}
			if full++; n < copyBuffer {
				full = 0
			}
			if full == bulkReads {
				full = 0
				if done, err := d.splice(); done {
					return err
				}
			}
		}
		if done, err := d.readEnded(err); done {
			return err
		}
	}
}

// readEnded decides what an error of reading means: nothing while the flow goes
// on, the end of the stream, or a failure.
func (d *direction) readEnded(err error) (done bool, _ error) {
	switch {
	case err == nil:
		return false, nil
	case err == io.EOF:
		return true, nil
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return true, err
	case d.flow.halfClosed.Load() && d.bytes == d.rested && !d.until.IsZero() && !time.Now().Before(d.until):
		return true, err
	}
	d.rested = d.bytes
	err = d.rest()
	return err != nil, err
}

// rest sets the deadline of a direction at rest: none, or that of a flow which
// the other side has ended. The order matters: the end of the other direction is
// first noted in halfClosed, and then the deadline is set.
func (d *direction) rest() error {
	if err := d.src.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if d.flow.halfClosed.Load() {
		d.until = time.Now().Add(halfClosedIdle)
		return d.src.SetReadDeadline(d.until)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// chunk is how much a link carries at a time, and ahead how many of those may be on
// their way: together more than a database says in one round trip.
const (
	chunk = 16 << 10
	ahead = 256
)

// link is a way to a unix socket that takes time, and that can be cut: bytes are then
// neither refused nor answered, as behind a firewall that drops them.
type link struct {
	to  string
	way time.Duration // one way
	ln  net.Listener

	mu    sync.Mutex
	cut   chan struct{} // guarded by mu; closed while bytes go through
	conns map[net.Conn]bool
	done  sync.WaitGroup
}

// openLink listens on a free port of 127.0.0.1 for what goes to a socket that is a round
// trip away.
func openLink(socket string, roundTrip time.Duration) (*link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{to: socket, way: roundTrip / 2, ln: ln, cut: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(l.cut)
	l.done.Go(l.accept)
	return l, nil
}

func (l *link) addr() string { return l.ln.Addr().String() }

func (l *link) accept() {
	for {
		near, err := l.ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("unix", l.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		if !l.keep(near, far) {
			return
		}
		l.done.Go(func() { l.carry(near, far) })
		l.done.Go(func() { l.carry(far, near) })
	}
}

// keep notes a connection's ends, unless the link was closed.
func (l *link) keep(ends ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range ends {
		if l.conns == nil {
			_ = end.Close()
			continue
		}
		l.conns[end] = true
	}
	return l.conns != nil
}

// sent is what is on its way, and when it arrives.
type sent struct {
	bytes []byte
	due   time.Time
}

// carry takes bytes one way until either end is closed, which closes the other.
func (l *link) carry(from, to net.Conn) {
	way := make(chan sent, ahead)
	ctx, cancel := context.WithCancel(context.Background())
	var arriving sync.WaitGroup
	arriving.Go(func() {
		defer cancel()
		for s := range way {
			time.Sleep(time.Until(s.due))
			<-l.through()
			if _, err := to.Write(s.bytes); err != nil {
				return
			}
		}
	})
	for ctx.Err() == nil {
		b := make([]byte, chunk)
		n, err := from.Read(b)
		if n > 0 {
			select {
			case way <- sent{b[:n], time.Now().Add(l.way)}:
			case <-ctx.Done():
			}
		}
		if err != nil {
			break
		}
	}
	close(way)
	arriving.Wait()
	cancel()
	_ = errors.Join(from.Close(), to.Close()) // both directions close both
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, from)
	delete(l.conns, to)
}

// through is closed while bytes go through.
func (l *link) through() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// part and join cut the link and mend it.
func (l *link) part() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = make(chan struct{})
}

func (l *link) join() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.cut:
	default:
		close(l.cut)
	}
}

// Close ends every connection.
func (l *link) Close() error {
	l.join()
	err := l.ln.Close()
	l.mu.Lock()
	for conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
	l.mu.Unlock()
	l.done.Wait()
	return err
}

var _ io.Closer = (*link)(nil)

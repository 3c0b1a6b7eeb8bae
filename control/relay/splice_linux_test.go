package relay

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"porchlight/test/programs"
)

// A flow that is bulk, small, silent and bulk again carries every byte, one after
// the other, also where there is no pipe for it; an answer that is shorter than what
// a flow in a hurry waits for comes all the same.
func TestBulkCarriesEveryByte(t *testing.T) {
	t.Parallel()
	for i, pipes := range []int{pipeRoom(), 0, pipeRoom()} {
		visitor, visitorEnd := programs.Connected(t)
		agent, agentEnd := programs.Connected(t)
		ended := make(chan int64, 1)
		f := &flow{visitor: visitorEnd, agent: agentEnd, pipes: &pipePool{most: pipes}, passed: i == 2}
		f.ended = func(_, toVisitor int64) { ended <- toVisitor }
		f.start()
		var total int64
		send := func(size int) {
			t.Helper()
			sent := make([]byte, size)
			_, _ = rand.NewChaCha8([32]byte{byte(total), byte(total >> 20)}).Read(sent) // it never fails
			go agent.Write(sent)
			got := make([]byte, size)
			programs.Got(io.ReadFull(visitor, got))(t)
			if sha256.Sum256(got) != sha256.Sum256(sent) {
				t.Fatalf("%d pipes: %d bytes after %d came out otherwise", pipes, size, total)
			}
			total += int64(size)
		}
		// On a busy machine so many bytes can come too slowly to be a bulk flow.
		programs.Eventually(t, "a pipe is used", func() bool {
			send(8 << 20)
			out, free := f.pipes.counted()
			return out+len(free) == min(pipes, 1)
		})
		for _, size := range []int{bulkMark/2 + 1, passedMark/2 + 1, 1, 4 << 20, 100, 3 << 20} {
			send(size)
		}
		agent.Close()
		if more, err := io.ReadAll(visitor); err != nil || len(more) > 0 {
			t.Errorf("at the end: %d bytes, %v", len(more), err)
		}
		visitor.Close()
		if n := <-ended; n != total {
			t.Errorf("%d bytes are counted of %d", n, total)
		}
		out, free := f.pipes.counted()
		if out != 0 {
			t.Errorf("%d pipes were not put back", out)
		}
		if pipes > 0 && len(free) != 1 {
			t.Errorf("%d pipes were used", len(free))
		}
		for _, used := range free {
			used.close()
		}
	}
}

// counted is how many pipes are given out, and those that are kept for the next.
func (p *pipePool) counted() (out int, free []pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out, p.free
}

// A visitor who has said all there is to say hears the rest at once: a few bytes after
// very many, when the flow waits for many, and the first ones.
func TestHalfClosedHearsTheRest(t *testing.T) {
	t.Parallel()
	for _, before := range []int{8 << 20, 0} {
		visitor, visitorEnd := programs.Connected(t)
		agent, agentEnd := programs.Connected(t)
		f := &flow{visitor: visitorEnd, agent: agentEnd, pipes: &pipePool{most: 1}, ended: func(_, _ int64) {}}
		f.start()
		_ = visitor.SetReadDeadline(time.Now().Add(time.Minute))
		go agent.Write(make([]byte, before))
		programs.Got(io.CopyN(io.Discard, visitor, int64(before)))(t)
		_ = visitor.CloseWrite()
		if n, err := agent.Read(make([]byte, 1)); n > 0 || err != io.EOF {
			t.Fatalf("%d bytes, %v", n, err)
		}
		rest := make([]byte, 8)
		go io.WriteString(agent, "the rest") // and no end, which would bring it
		if _, err := io.ReadFull(visitor, rest); err != nil || string(rest) != "the rest" {
			t.Errorf("after %d bytes: %q, %v", before, rest, err)
		}
		_ = agent.Close()
	}
}

// A bulk flow to somebody near by is not paced, where the system would, also where it does
// not let its users choose cubic; one that asked for something else keeps that.
func TestBulkNearByIsNotPaced(t *testing.T) {
	t.Parallel()
	choose := func(t *testing.T, conn *net.TCPConn, name string) (refused error) {
		t.Helper()
		raw, err := conn.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) {
				refused = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
			})
		}
		programs.Must(t, err)
		return refused
	}
	unpaced := "cubic"
	if one, _ := programs.Connected(t); choose(t, one, unpaced) != nil {
		unpaced = "reno"
	}
	for before, after := range map[string]string{"bbr": unpaced, "reno": "reno"} {
		t.Run(before, func(t *testing.T) {
			visitor, visitorEnd := programs.Connected(t)
			_, agentEnd := programs.Connected(t)
			if err := choose(t, visitorEnd, before); err != nil {
				t.Skipf("this system has no %s, or not for this user: %v", before, err)
			}
			seenNear(t, visitorEnd, visitor)
			bulk, ok := newSplicer(visitorEnd, agentEnd, &pipePool{most: 1})
			if !ok {
				t.Fatal("no pipe was to be had")
			}
			defer func() { bulk.close(); bulk.pipe.close() }()
			raw := programs.Got(visitorEnd.SyscallConn())(t)
			var control string
			_ = raw.Control(func(fd uintptr) {
				control, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			})
			if control != after {
				t.Errorf("a flow under %s goes on under %q, not %s", before, control, after)
			}
		})
	}
}

// seenNear sends bytes forth and back until the system has seen once how near the other end
// is: on a busy machine the first round trips take longer than nearBy.
func seenNear(t *testing.T, conn, peer *net.TCPConn) {
	t.Helper()
	raw := programs.Got(conn.SyscallConn())(t)
	one := make([]byte, 1)
	for near := false; !near; {
		for _, ends := range [][2]*net.TCPConn{{conn, peer}, {peer, conn}} {
			programs.Got(ends[0].Write(one))(t)
			programs.Got(io.ReadFull(ends[1], one))(t)
		}
		_ = raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			near = err == nil && time.Duration(info.Min_rtt)*time.Microsecond < nearBy
		})
	}
}

// Pipes are bounded, used again only when they are empty, and no more are kept than
// the next flows need.
func TestPipesAreBounded(t *testing.T) {
	t.Parallel()
	p := &pipePool{most: 2}
	one, ok1 := p.get()
	two, ok2 := p.get()
	if _, ok := p.get(); !ok1 || !ok2 || ok {
		t.Fatal("the third of two pipes was given out, or one of the first was not")
	}
	p.put(one, true)
	p.put(two, false)
	if again, ok := p.get(); !ok || again != one || len(p.free) != 0 {
		t.Errorf("%v, %v: not the pipe that was empty", again, ok)
	}
	one.close()
	if pipeRoom() < 1 {
		t.Error("there is room for no pipe")
	}
}

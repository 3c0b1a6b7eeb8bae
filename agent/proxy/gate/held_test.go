package gate

import (
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"porchlight/agent/proxy/http2"
	"porchlight/agent/proxy/limits"
)

// fromConn is a visitor's connection of a source.
type fromConn struct {
	net.Conn
	ip byte
}

func (c fromConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, c.ip)} }

// TestHeld: bytes of requests have a bound for each source and in all; who has held some for
// the longest time gives way, never one on whom somebody was let in, who has a part kept.
func TestHeld(t *testing.T) {
	t.Parallel()
	full := 0
	s := newConns(100_000, time.Hour, func() { full++ }, slog.New(slog.DiscardHandler))
	server := http2.New(http2.Config{})
	add := func(ip byte) *Conn {
		t.Helper()
		raw, other := net.Pipe()
		t.Cleanup(func() { raw.Close(); other.Close() })
		c := s.add(fromConn{raw, ip})
		if c == nil {
			t.Fatal("no place")
		}
		c.http2 = server.NewConn(t.Context(), raw)
		return c
	}
	// taken has c take more, of which others give way whose bytes come back at once.
	taken := func(c *Conn, n int, givesWay ...*Conn) bool {
		done := make(chan bool)
		go func() { done <- c.Take(n) }()
		for _, other := range givesWay {
			for gone := false; !gone; {
				s.mu.Lock()
				gone = other.closed
				s.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
			other.Give(other.holds)
		}
		return <-done
	}
	let := add(1)
	let.LetIn(http.Header{})
	if !taken(let, limits.HeldPerSource/2) {
		t.Fatal("one on whom somebody was let in may hold nothing")
	}
	first, second := add(1), add(1)
	if !taken(first, limits.HeldPerSource/4) || !taken(second, limits.HeldPerSource/4) {
		t.Fatal("a source may not hold its share")
	}
	if full != 0 {
		t.Error("it is told to be full, and is not")
	}
	third := add(1)
	if !taken(third, 1, first) || let.closed || second.closed {
		t.Error("the oldest of the source does not give way")
	}
	if full == 0 {
		t.Error("nobody is told that it is full")
	}
	third.Give(1)
	if !taken(second, 1) {
		t.Error("what was given back is not there")
	}
	if taken(let, limits.HeldPerSource, second) {
		t.Error("more than a source may hold")
	}

	left := limits.Held - limits.HeldKept - limits.HeldPerSource/2
	var strangers []*Conn
	for ip := byte(10); left >= limits.HeldPerSource; ip++ {
		c := add(ip)
		if !taken(c, limits.HeldPerSource) {
			t.Fatalf("no room with %d bytes left", left)
		}
		strangers, left = append(strangers, c), left-limits.HeldPerSource
	}
	if !taken(add(100), limits.HeldPerSource, strangers[0]) {
		t.Error("the oldest of all does not give way")
	}
	maya := add(101)
	maya.LetIn(http.Header{})
	if !taken(maya, limits.HeldPerSource) || strangers[1].closed {
		t.Error("no part is kept for who is let in")
	}
	if s.held > limits.Held {
		t.Errorf("%d bytes are held", s.held)
	}
}

package gate

import (
	"log/slog"
	"net"
	"testing"
	"time"
)

// TestHold: a connection holds one thing, and releases it when it holds another or is
// closed, once.
func TestHold(t *testing.T) {
	t.Parallel()
	raw, other := net.Pipe()
	defer raw.Close()
	defer other.Close()
	c := newConns(1000, time.Minute, nil, slog.New(slog.DiscardHandler)).add(raw)
	released := map[string]int{}
	hold := func(what string) { c.Hold(what, func() { released[what]++ }) }
	if c.Holds("one") || !(*Conn)(nil).Holds("one") {
		t.Error("it holds what it was not given, or a request without a connection has to")
	}
	hold("one")
	if !c.Holds("one") || released["one"] != 0 {
		t.Errorf("released %v", released)
	}
	hold("two")
	if c.Holds("one") || !c.Holds("two") || released["one"] != 1 {
		t.Errorf("after another: released %v", released)
	}
	c.close()
	c.close()
	hold("three")
	if released["two"] != 1 || released["three"] != 1 || released["one"] != 1 {
		t.Errorf("after the end: released %v", released)
	}
}

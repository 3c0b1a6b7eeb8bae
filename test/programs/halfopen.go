package programs

import (
	"net"
	"sync/atomic"
)

// HalfOpen is a connection of a network that can come to pass bytes one way only: once
// Silent is set, what the other side says is lost, and what is said to it arrives.
type HalfOpen struct {
	net.Conn
	Silent *atomic.Bool // of several connections, where they go together
}

func (h HalfOpen) Read(b []byte) (int, error) {
	for {
		n, err := h.Conn.Read(b)
		if err != nil || !h.Silent.Load() {
			return n, err
		}
	}
}

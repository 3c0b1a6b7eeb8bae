package programs

import (
	"context"
	"net"
	"sync"
	"testing"
)

// ServeConns has take each connection of a listener, all at once. A connection is closed after
// it, and when the test ends. end ends the listening before, and waits for the last one.
func ServeConns(t testing.TB, ln net.Listener, take func(net.Conn)) (end func()) {
	over, cut := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { ln.Close(); cut(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(over, func() { conn.Close() })()
				take(conn)
			})
		}
	})
	return func() { ln.Close(); all.Wait() }
}

// Connected is a connection over loopback and its other end, until the end of the test.
func Connected(t testing.TB) (dialed, accepted *net.TCPConn) {
	t.Helper()
	ln := Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	dialed = Got(net.Dial("tcp", ln.Addr().String()))(t).(*net.TCPConn)
	accepted = Got(ln.Accept())(t).(*net.TCPConn)
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	return dialed, accepted
}

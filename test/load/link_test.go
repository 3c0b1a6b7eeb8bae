package main

import (
	"io"
	"net"
	"testing"
	"time"

	"porchlight/test/programs"
)

// echoAt repeats what it hears at a socket, and notes each byte.
func echoAt(t *testing.T, socket string) (said chan byte) {
	t.Helper()
	ln := programs.Got(net.Listen("unix", socket))(t)
	said = make(chan byte, 16)
	programs.ServeConns(t, ln, func(conn net.Conn) {
		b := make([]byte, 1)
		for {
			if _, err := conn.Read(b); err != nil {
				return
			}
			said <- b[0]
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	})
	return said
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn := programs.Got(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(programs.Patience)) // of an open connection
	return conn
}

func echo(conn net.Conn) error {
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

//go:build !linux || race

package socket

import "net"

// Wrap is the connection itself: here the scheduler is told of every call.
func Wrap(conn net.Conn) net.Conn { return conn }

// WriteTo is the connection's own Write.
func WriteTo(conn *net.TCPConn, p []byte) (int, error) { return conn.Write(p) }

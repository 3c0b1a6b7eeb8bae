//go:build !linux || race

package socket

import "net"

// Wrap is the connection itself: here the scheduler is told of every call.
func Wrap(conn net.Conn) net.Conn { return conn }

// Rest is the connection itself.
func Rest(conn *net.TCPConn) Resting { return conn }

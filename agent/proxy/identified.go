package proxy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http/httptrace"
)

// The engine writes Host first and then whatever it has, in an order of its own.
// identifiedConn puts the five in right after Host.

// identifiedConn is a connection of the engine's to an app. It is touched by one
// request at a time: the engine gives a connection out again once the request
// before has been written whole.
type identifiedConn struct {
	net.Conn
	known bool   // some request has said who asks
	five  []byte // still to be written
	lines int    // of the head before it, still to be written
}

var errNotIdentified = errors.New("a request was to be sent without saying who asks")

// identified wraps the connections of dial.
func identified(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &identifiedConn{Conn: conn}, nil
	}
}

// trace has the connection that a request is sent on, kept or new, say who asks.
func (f *five) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if c, ok := info.Conn.(*identifiedConn); ok {
			c.known, c.five, c.lines = true, f.appendTo(nil), 2 // the request line and Host
		}
	}}
}

func (c *identifiedConn) Write(p []byte) (int, error) {
	if !c.known {
		return 0, errNotIdentified
	}
	if c.lines == 0 {
		return c.Conn.Write(p)
	}
	at := 0
	for c.lines > 0 {
		end := bytes.IndexByte(p[at:], '\n')
		if end < 0 {
			return c.Conn.Write(p)
		}
		at += end + 1
		c.lines--
	}
	whole := make([]byte, 0, len(p)+len(c.five))
	whole = append(append(append(whole, p[:at]...), c.five...), p[at:]...)
	c.five = nil
	n, err := c.Conn.Write(whole)
	switch added := len(whole) - len(p); {
	case n <= at:
		return n, err
	case n < at+added:
		return at, err
	default:
		return n - added, err
	}
}

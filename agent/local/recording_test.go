package local

import (
	"bytes"
	"context"
	"net"
	"sync"

	"porchlight/control/controlapi"
)

// recording keeps every byte of the connections it dials, both ways.
type recording struct {
	mu   sync.Mutex
	wire bytes.Buffer
}

func (r *recording) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := controlapi.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return recordedConn{conn, r}, nil
}

func (r *recording) keep(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wire.Write(p)
}

func (r *recording) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wire.String()
}

type recordedConn struct {
	net.Conn
	r *recording
}

func (c recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.r.keep(p[:n])
	return n, err
}

func (c recordedConn) Write(p []byte) (int, error) {
	c.r.keep(p)
	return c.Conn.Write(p)
}

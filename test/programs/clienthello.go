package programs

import (
	"crypto/tls"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// ClientHello returns the first bytes a real TLS client sends.
func ClientHello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, config).Handshake()
		_ = client.Close()
	}()
	b := make([]byte, 64<<10)
	n := Got(server.Read(b))(t)
	for n < 5 || n < 5+int(b[3])<<8+int(b[4]) {
		n += Got(server.Read(b[n:]))(t)
	}
	return b[:n]
}

// Fragments cuts the handshake bytes of one TLS record into records of size bytes.
func Fragments(record []byte, size int) []byte {
	var out []byte
	for body := range slices.Chunk(record[5:], size) {
		out = append(out, 22, 3, 1, byte(len(body)>>8), byte(len(body)))
		out = append(out, body...)
	}
	return out
}

// OnlyReads is a connection of somebody who said what Reader has, and hears nothing.
type OnlyReads struct {
	net.Conn
	Reader io.Reader
}

func (c *OnlyReads) Read(b []byte) (int, error)       { return c.Reader.Read(b) }
func (c *OnlyReads) Write(b []byte) (int, error)      { return len(b), nil }
func (c *OnlyReads) Close() error                     { return nil }
func (c *OnlyReads) SetDeadline(time.Time) error      { return nil }
func (c *OnlyReads) SetReadDeadline(time.Time) error  { return nil }
func (c *OnlyReads) SetWriteDeadline(time.Time) error { return nil }

package programs

import (
	"bytes"
	"io"
	"net"

	"golang.org/x/net/http2"
)

// Heedless is a connection whose other side speaks HTTP/2 first, and whose client sends
// heads longer than the other side announces, as browsers do and Go does not.
func Heedless(conn net.Conn) (net.Conn, error) {
	first := make([]byte, 9) // of the SETTINGS, which come first
	if _, err := io.ReadFull(conn, first); err != nil {
		return nil, err
	}
	settings := make([]byte, int(first[1])<<8|int(first[2]))
	if _, err := io.ReadFull(conn, settings); err != nil {
		return nil, err
	}
	for offset := 0; offset+6 <= len(settings); offset += 6 {
		if settings[offset+1] == byte(http2.SettingMaxHeaderListSize) {
			settings[offset] = 0xf0 // one that nobody knows
		}
	}
	return &heedlessConn{conn, io.MultiReader(bytes.NewReader(append(first, settings...)), conn)}, nil
}

type heedlessConn struct {
	net.Conn
	reads io.Reader
}

func (c *heedlessConn) Read(p []byte) (int, error) { return c.reads.Read(p) }

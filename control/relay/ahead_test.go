package relay

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// corked is a connection whose writes are kept back for a while.
type corked struct {
	net.Conn
	on   bool
	kept bytes.Buffer
}

func (c *corked) Write(b []byte) (int, error) {
	if c.on {
		return c.kept.Write(b)
	}
	return c.Conn.Write(b)
}

// pull lets go of what was kept back, in one piece.
func (c *corked) pull(t *testing.T) {
	t.Helper()
	c.on = false
	programs.Got(c.Conn.Write(c.kept.Bytes()))(t)
	c.kept.Reset()
}

// A session waits for its socket, which does not tell of what TLS has read from it. Checked:
// frames are answered that come together in one record, or in records of one segment, and
// one whose first byte comes with the frame before it.
func TestFramesThatComeTogether(t *testing.T) {
	t.Parallel()
	_, addr := serveRelay(t, nil, nil)
	cork := &corked{Conn: dial(t, addr)}
	a := connectAgentOver(t, cork, addr, "maya")
	bytesOf := func(f tunnelwire.Frame) []byte {
		var b bytes.Buffer
		programs.Must(t, tunnelwire.WriteFrame(&b, f))
		return b.Bytes()
	}
	known := bytesOf(tunnelwire.Frame{Type: tunnelwire.Known})
	ping := func(sent int64) []byte { return bytesOf(tunnelwire.Frame{Type: tunnelwire.Ping, Sent: sent}) }
	write := func(b []byte) {
		t.Helper()
		programs.Got(a.control.Write(b))(t)
	}
	answered := func(what string, sent int64) {
		t.Helper()
		for f := range a.frames {
			if f.Type == tunnelwire.Pong && f.Sent == sent {
				return
			}
		}
		t.Fatalf("%s: the connection ended without an answer", what)
	}

	write(append(bytes.Clone(known), ping(1)...))
	answered("in one record", 1)

	cork.on = true
	write(known)
	write(known)
	write(ping(2))
	cork.pull(t)
	answered("in one segment", 2)

	next := ping(4)
	write(append(ping(3), next[0]))
	answered("before the first byte of another", 3)
	write(next[1:])
	answered("begun with another", 4)
}

// lines are those of a log.
type lines chan string

func (c lines) Write(line []byte) (int, error) {
	c <- string(line)
	return len(line), nil
}

// The end of TLS that comes together with a frame ends the session as such; it is not
// silence, though the connection under it stays open.
func TestEndBehindAFrame(t *testing.T) {
	t.Parallel()
	log := make(lines, 64)
	_, addr := serveRelay(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) }, nil)
	cork := &corked{Conn: dial(t, addr)}
	a := connectAgentOver(t, cork, addr, "maya")
	cork.on = true
	programs.Must(t, tunnelwire.WriteFrame(a.control, tunnelwire.Frame{Type: tunnelwire.Known}))
	if err := errors.Join(a.control.CloseWrite(), cork.SetWriteDeadline(time.Time{})); err != nil { // it leaves one in the past
		t.Fatal(err)
	}
	cork.pull(t)
	for line := range log {
		if strings.Contains(line, "tunnel ended") {
			if !strings.Contains(line, "err=EOF") {
				t.Error(line)
			}
			return
		}
	}
}

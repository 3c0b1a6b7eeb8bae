// Package carry carries a TCP connection in a WebSocket, at both ends of one.
//
// Bytes go as binary messages, and the end of one direction as an empty message, so that
// the other direction may go on. A WebSocket that ends before both directions have is a
// connection that was reset. One buffer is kept each way: whoever does not read has the
// other side wait. Who may have the connection, and with whom, is not decided here.
package carry

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"
)

// Subprotocol names what both ends speak (RFC 6455, section 1.9).
const Subprotocol = "porchlight-tcp"

const (
	piece      = 32 << 10 // bytes of a message that is sent
	maxMessage = 1 << 20  // bytes of one that is taken
)

// Conn is what is carried; *net.TCPConn is one. Close ends a Read and a Write under way.
type Conn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

var (
	errEnded   = errors.New("the WebSocket ended before the connection did")
	errMessage = errors.New("a message is not binary")
)

// Join carries conn until both directions have ended, either end is reset, or ctx ends. It
// closes both; the error is nil in the first case only, and then all was delivered.
func Join(ctx context.Context, ws *websocket.Conn, conn Conn) error {
	ws.SetReadLimit(maxMessage)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	whole := context.AfterFunc(ctx, func() { reset(ws, conn) })
	var both errgroup.Group
	carry := func(direction func() error) {
		both.Go(func() error {
			err := direction()
			if err != nil {
				cancel()
			}
			return err
		})
	}
	sent := make(chan struct{})
	carry(func() error {
		err := send(ctx, ws, conn)
		if err == nil {
			close(sent)
		}
		return err
	})
	carry(func() error { return receive(ctx, ws, conn, sent) })
	err := both.Wait()
	if whole() && err == nil {
		_ = ws.Close(websocket.StatusNormalClosure, "") // both have all there is
		return conn.Close()
	}
	reset(ws, conn)
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// send sends what comes from conn, and its end.
func send(ctx context.Context, ws *websocket.Conn, conn io.Reader) error {
	buf := make([]byte, piece)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			if err := ws.Write(ctx, websocket.MessageBinary, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return ws.Write(ctx, websocket.MessageBinary, nil)
		case err != nil:
			return err
		}
	}
}

// receive gives conn what comes, and its end; then it watches for the end of the WebSocket
// until all was sent.
func receive(ctx context.Context, ws *websocket.Conn, conn Conn, sent <-chan struct{}) error {
	buf := make([]byte, piece)
	to := struct{ io.Writer }{conn} // a *net.TCPConn would take a buffer of its own for each message
	for {
		kind, message, err := ws.Reader(ctx)
		if err != nil {
			return err
		}
		if kind != websocket.MessageBinary {
			return errMessage
		}
		n, err := io.CopyBuffer(to, message, buf)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	if err := conn.CloseWrite(); err != nil && !errors.Is(err, syscall.ENOTCONN) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	gone := ws.CloseRead(ctx)
	select {
	case <-sent:
		return nil
	case <-gone.Done():
	}
	select {
	case <-sent: // the other end has it all already
		return nil
	default:
		return errEnded
	}
}

// reset ends both without a word, so that neither end takes what it has for all.
func reset(ws *websocket.Conn, conn Conn) {
	if tcp, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0) // fails on what is closed
	}
	_ = conn.Close()
	_ = ws.CloseNow()
}

package proxy_test

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"porchlight/internal/socket"
	"porchlight/test/programs"
)

// cuttable is a visitor's connection that can be cut, as those of a tunnel can.
type cuttable struct {
	*net.TCPConn
	closed atomic.Bool
}

func (c *cuttable) Cut() bool { return socket.Cut(c.TCPConn) }

func (c *cuttable) Close() error {
	c.closed.Store(true)
	return c.TCPConn.Close()
}

// cuttables is a listener whose visitors can be cut, and keeps who came.
type cuttables struct {
	net.Listener
	mu   sync.Mutex
	came []*cuttable // guarded by mu
}

func (l *cuttables) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &cuttable{TCPConn: conn.(*net.TCPConn)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.came = append(l.came, c)
	return c, nil
}

func (l *cuttables) all() []*cuttable {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.came)
}

// Promised: what ends access ends all that is open at once; no visitor's end waits for
// what another's costs here.
// Checked with one whose connection cannot be closed for as long as somebody is busy with
// it: that visitor and all others hear of their end, whoever ended access has the
// answer, and when the connection can be closed, nothing of any is left.
func TestNoEndWaitsForAnother(t *testing.T) {
	t.Parallel()
	r, b := newVisitor(t, false, echo)
	inner := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	ln := &cuttables{Listener: inner}
	r.serve(ln)
	visitor := b.at(inner.Addr().String(), false)
	const many = 20
	var open []*websocket.Conn
	for range many {
		ws, _, err := visitor.dial("wss://notes."+rootHost+"/ws", "Origin", origin)
		programs.Must(t, err)
		defer ws.CloseNow()
		_, _, err = ws.Read(t.Context())
		programs.Must(t, err)
		open = append(open, ws)
	}
	release := programs.Hold(t, ln.all()[many/2])
	closed := make(chan int, 1)
	go func() { closed <- r.access.CloseAll() }()
	select {
	case n := <-closed:
		if n != many {
			t.Errorf("%d were closed, want %d", n, many)
		}
	case <-time.After(patient):
		t.Fatal("ending access waits for a connection that cannot be closed")
	}
	for _, ws := range open {
		if _, _, err := ws.Read(t.Context()); err == nil {
			t.Error("a WebSocket is open")
		}
	}
	release()
	within(t, "nothing is live", func() bool { return len(r.access.Connections()) == 0 })
	for _, conn := range ln.all() {
		within(t, "every connection is closed", conn.closed.Load)
	}
}

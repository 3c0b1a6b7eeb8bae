package tunnel_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"porchlight/agent/tunnel"
	"porchlight/test/programs"
)

// network dials connections, and can go: then nothing of those passes any more, an end
// neither.
type network struct {
	mu    sync.Mutex // guards what follows
	gone  *atomic.Bool
	conns []net.Conn // those that carry
}

type overNetwork struct{ programs.HalfOpen }

func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, conn)
	return overNetwork{programs.HalfOpen{Conn: conn, Silent: n.gone}}, nil
}

func (n *network) lose(t *testing.T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone.Store(true)
	for _, conn := range n.conns {
		t.Cleanup(func() { _ = conn.Close() })
	}
	n.gone, n.conns = new(atomic.Bool), nil
}

func (c overNetwork) Write(b []byte) (int, error) {
	if c.Silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c overNetwork) Close() error {
	if c.Silent.Load() {
		return c.Conn.(*net.TCPConn).CloseRead() // which only who reads here notices
	}
	return c.Conn.Close()
}

// abortable is a visitor, as the gate has them.
type abortable interface {
	LetIn()
	Abort() error
}

// abortsWhen is an app that lets a visitor in, says one byte back, and aborts the visit when
// it is told to.
func abortsWhen(told <-chan struct{}) func(*tls.Conn) {
	return func(conn *tls.Conn) {
		visitor := conn.NetConn().(abortable)
		visitor.LetIn()
		if _, err := io.CopyN(conn, conn, 1); err != nil {
			return
		}
		<-told
		_ = visitor.Abort()
	}
}

// Weakness: where the network had gone, the relay did not hear that a visit was aborted,
// and the visitor's socket hung until a system gave it up. Checked: it is reset once the
// relay is reached again, whether the visit was aborted before the loss was noticed or
// after that.
func TestRelaysAreToldOfAbortedVisits(t *testing.T) {
	t.Parallel()
	for when, early := range map[string]bool{"before": true, "after": false} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			n := network{gone: new(atomic.Bool)}
			abort := make(chan struct{})
			w := start(t, options{
				tunnel: func(c *tunnel.Config) { c.Dial = n.dial },
				app:    abortsWhen(abort),
			})
			w.connected(true)
			visitor := w.mustVisit("notes.maya.localhost")
			programs.Must(t, echo(visitor, []byte("x")))
			n.lose(t)
			w.tunnel.Wake() // so that the loss is noticed soon
			if !early {
				programs.Eventually(t, "the relay is reached again", func() bool {
					return strings.Count(w.log.String(), `msg="connected to the relay"`) >= 2
				})
			}
			close(abort)
			if _, err := visitor.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the visitor is told %v; log:\n%s", err, w.log)
			}
		})
	}
}

package relay

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"porchlight/test/programs"
)

// tired fails with each of its errors before it accepts.
type tired struct {
	net.Listener
	mu   sync.Mutex
	left []syscall.Errno
}

func (l *tired) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.left) > 0 {
		errno := l.left[0]
		l.left = l.left[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", errno)}
	}
	return l.Listener.Accept()
}

// A process without a file descriptor left, a firewall that refuses a connection
// and one that broke before it was accepted do not end the relay.
func TestAcceptSurvives(t *testing.T) {
	t.Parallel()
	_, addr := serveRelay(t, nil, func(l net.Listener) net.Listener {
		return &tired{Listener: l, left: []syscall.Errno{syscall.EMFILE, syscall.EMFILE, syscall.EPERM, syscall.EPROTO, syscall.ENETDOWN}}
	})
	connectAgent(t, addr, "maya")
}

// Weakness: a node whose listener for other nodes broke went on, and took over nobody's
// visitors without a word. Checked: it ends and says so, as with the one for everybody.
func TestPeersListenerFails(t *testing.T) {
	t.Parallel()
	join := among(t, sharedStore(t, time.Now), "node-a")
	r := newRelay(t, func(c *Config) {
		join(c)
		c.Peers.Listener = &tired{Listener: c.Peers.Listener, left: []syscall.Errno{syscall.EINVAL}}
	})
	l := programs.Got(Listen(t.Context(), "127.0.0.1:0"))(t)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { ended <- r.Serve(ctx, l) }()
	select {
	case err := <-ended:
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the relay goes on without hearing other nodes")
	}
}

// Weakness: every control connection that is refused is a line of the operator's log, and
// strangers can open as many as the ramp lets in. Checked: a minute has a bounded number,
// the last says that there are more, and the next minute begins anew.
func TestRefusedConnectionsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(1<<30, 0)
	r := newRelay(t, func(c *Config) {
		c.Log, c.Now = slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now }
	})
	stranger, _ := net.Pipe()
	for minute := 1; minute <= 2; minute++ {
		for range 10 * refusalsPerMinute {
			r.tellRefused(stranger, errors.New("no hello"))
		}
		if n := strings.Count(log.String(), "\n"); n != minute*(refusalsPerMinute+1) {
			t.Errorf("%d lines in %d minutes", n, minute)
		}
		now = now.Add(time.Minute)
	}
	if !strings.HasSuffix(strings.TrimSpace(log.String()), `not logged"`) {
		t.Errorf("the log ends with %q", log.String()[log.Len()-200:])
	}
}

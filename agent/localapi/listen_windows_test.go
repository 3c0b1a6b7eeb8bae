package localapi

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"

	"porchlight/internal/private"
	"porchlight/test/programs"
)

// One agent has a data directory's pipe, knows who connects, and leaves it to the next.
func TestListenOwner(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	l, at, err := listenForOwner(data)
	programs.Must(t, err)
	defer l.Close()
	came := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		came <- c
	}()
	c := programs.Got(private.Dial(context.Background(), at))(t)
	defer c.Close()
	accepted := <-came
	defer accepted.Close()
	if pid := peerPID(accepted); pid != os.Getpid() {
		t.Errorf("process %d connects, want %d", pid, os.Getpid())
	}
	if _, _, err := listenForOwner(data); err == nil || !strings.Contains(err.Error(), "another Porchlight serves") {
		t.Errorf("a second agent on the data directory: %v", err)
	}
	other, otherAt, err := listenForOwner(t.TempDir())
	programs.Must(t, err, other.Close())
	if otherAt == at {
		t.Error("two data directories share a pipe")
	}
	programs.Must(t, l.Close())
	again, _, err := listenForOwner(data)
	programs.Must(t, err, again.Close())
}

package socket_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"porchlight/internal/socket"
)

// Who is given is accepted, and after the end nobody is, who waited for it least of all.
func TestHanded(t *testing.T) {
	t.Parallel()
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	for range 64 {
		l, given := socket.NewHanded(), make(chan bool)
		give := func(ctx context.Context) { given <- l.Give(ctx, one) }
		go give(t.Context())
		if got, err := l.Accept(); got != one || err != nil || !<-given {
			t.Fatalf("accepted %v, %v", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go give(ctx)
		cancel()
		if <-given {
			t.Fatal("it is given to nobody")
		}
		go give(t.Context())
		_ = l.Close()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) || <-given {
			t.Fatalf("after the end: %v", err)
		}
		_ = l.Close()
	}
}

package carry

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// carried is a way from a program to an app, through a WebSocket.
type carried struct {
	program, app *net.TCPConn
	cut          context.CancelFunc
	ends         chan error // of both, as they end
}

func carriedWay(t *testing.T) carried {
	t.Helper()
	c := carried{ends: make(chan error, 2)}
	ctx, cut := context.WithCancel(context.Background())
	t.Cleanup(cut)
	c.cut = cut
	atApp, app := programs.Connected(t)
	program, atProgram := programs.Connected(t)
	c.program, c.app = program, app
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}})
		if err != nil {
			t.Error(err)
			return
		}
		c.ends <- Join(ctx, ws, atApp)
	}))
	t.Cleanup(server.Close)
	ws, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), &websocket.DialOptions{Subprotocols: []string{Subprotocol}})
	programs.Must(t, err)
	go func() { c.ends <- Join(context.Background(), ws, atProgram) }()
	return c
}

// Each direction ends by itself, and what was sent before is there to the last byte.
func TestEachDirectionEndsByItself(t *testing.T) {
	t.Parallel()
	c := carriedWay(t)
	asked, answered := make([]byte, 3<<20+17), make([]byte, 5<<20+1)
	_, _ = rand.Read(asked)
	_, _ = rand.Read(answered)
	go func() {
		_, _ = c.program.Write(asked)
		_ = c.program.CloseWrite()
	}()
	got := programs.Got(io.ReadAll(c.app))(t) // to the end, with the other direction open
	if !bytes.Equal(got, asked) {
		t.Errorf("of %d bytes %d arrived, or others", len(asked), len(got))
	}
	go func() {
		_, _ = c.app.Write(answered)
		_ = c.app.Close()
	}()
	if got := programs.Got(io.ReadAll(c.program))(t); !bytes.Equal(got, answered) {
		t.Errorf("of %d bytes %d came back, or others", len(answered), len(got))
	}
	for range 2 {
		if err := <-c.ends; err != nil {
			t.Errorf("it ended with %v", err)
		}
	}
}

// A connection that is reset at one end, or cut between, is reset at the other: nobody takes
// what they have for all there is.
func TestAResetIsNoEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c carried){
		"the app resets":     func(c carried) { _ = c.app.SetLinger(0); _ = c.app.Close() },
		"it is cut":          func(c carried) { c.cut() },
		"half-open, and cut": func(c carried) { _ = c.program.CloseWrite(); _, _ = io.ReadAll(c.app); c.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := carriedWay(t)
			_, err := c.app.Write([]byte("half of it"))
			programs.Must(t, err)
			if _, err := io.ReadFull(c.program, make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			end(c)
			if n, err := c.program.Read(make([]byte, 10)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the program reads %d bytes, %v; want a reset", n, err)
			}
			for range 2 {
				if err := <-c.ends; err == nil {
					t.Error("it ended as if all had been delivered")
				}
			}
		})
	}
}

// Who does not read has the other side wait: what is under way is bounded.
func TestWhoDoesNotReadHasTheOtherWait(t *testing.T) {
	t.Parallel()
	c := carriedWay(t)
	programs.Must(t, c.program.SetWriteDeadline(time.Now().Add(time.Second)))
	sent, err := 0, error(nil)
	for err == nil && sent < 64<<20 {
		var n int
		n, err = c.program.Write(make([]byte, 256<<10))
		sent += n
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes were taken that nobody read: %v", sent, err)
	}
	c.cut()
	for range 2 {
		<-c.ends
	}
}

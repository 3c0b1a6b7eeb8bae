package private_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/internal/private"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen listens at a short path of a test's own.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l := programs.Got(private.Listen(path(t)))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func path(t *testing.T) string {
	t.Helper()
	dir := programs.Got(os.MkdirTemp("", "private-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "own.sock")
}

// pair is a connection's two ends.
func pair(t *testing.T) (dialled, accepted net.Conn) {
	t.Helper()
	l := listen(t)
	came := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		came <- c
	}()
	dialled = programs.Got(private.Dial(t.Context(), l.Addr().String()))(t)
	accepted = <-came
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// Both ends talk at once, of more than either side holds; what was written is read after
// its writer left, and then the end.
func TestBothEndsTalk(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	said := make([]byte, 300<<10)
	_, _ = rand.Read(said)
	var both sync.WaitGroup
	for _, ends := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			if _, err := ends[0].Write(said); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			heard := make([]byte, len(said))
			if _, err := io.ReadFull(ends[1], heard); err != nil || !bytes.Equal(heard, said) {
				t.Errorf("heard something else, %v", err)
			}
		})
	}
	both.Wait()
	programs.Got(a.Write([]byte("last")))(t)
	programs.Must(t, a.Close())
	if rest, err := io.ReadAll(b); string(rest) != "last" || err != nil {
		t.Errorf("after the end: %q, %v", rest, err)
	}
	if _, err := b.Write([]byte("x")); err == nil {
		t.Error("somebody who left was told something")
	}
}

// A deadline ends the call that waits and those after it; once moved, they go on, and no
// byte was lost.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	buf := make([]byte, 16)
	late := func(what string, err error) {
		t.Helper()
		var timeout net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s: %v", what, err)
		}
	}
	programs.Must(t, a.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := a.Read(buf)
	late("read", err)
	_, err = a.Read(buf)
	late("read again", err)
	programs.Must(t, a.SetReadDeadline(time.Time{}))

	waits := make(chan error)
	go func() { _, err := a.Read(buf); waits <- err }()
	for set := false; !set; {
		programs.Must(t, a.SetReadDeadline(time.Unix(1, 0)))
		select {
		case err := <-waits:
			late("read that waited", err)
			set = true
		case <-time.After(time.Second):
		}
	}
	programs.Must(t, a.SetDeadline(time.Time{}))
	programs.Got(b.Write([]byte("kept")))(t)
	if n, err := a.Read(buf); err != nil || string(buf[:n]) != "kept" {
		t.Errorf("once moved: %q, %v", buf[:n], err)
	}

	programs.Must(t, a.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
	_, err = a.Write(make([]byte, 8<<20)) // nobody reads
	late("write", err)
}

// Close ends who waits: to read, to write, and for somebody to come.
func TestCloseUnblocks(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	l := listen(t)
	ended := make(chan error, 3)
	go func() { _, err := a.Read(make([]byte, 1)); ended <- err }()
	go func() { _, err := a.Write(make([]byte, 8<<20)); ended <- err }()
	go func() { _, err := l.Accept(); ended <- err }()
	time.Sleep(20 * time.Millisecond) // most of them wait by now; those that come later have to fail, too
	programs.Must(t, a.Close(), l.Close())
	for range 3 {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v, want closed", err)
		}
	}
	for what, err := range map[string]error{"again": a.Close(), "deadline": a.SetDeadline(time.Now()), "listener": l.Close()} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v, want closed", what, err)
		}
	}
	if n, err := b.Read(make([]byte, 8<<20)); n == 0 && err == nil {
		t.Error("the other end hears nothing")
	}
}

// A server of HTTP stands on it, for many at once, and ends.
func TestServesHTTP(t *testing.T) {
	t.Parallel()
	l := listen(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(said) // who asked sees what is missing
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return private.Dial(ctx, l.Addr().String())
	}}}
	defer client.CloseIdleConnections()
	var many sync.WaitGroup
	for range 24 {
		many.Go(func() {
			resp, err := client.Post("http://localhost/", "text/plain", bytes.NewReader(make([]byte, 100<<10)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if heard, err := io.ReadAll(resp.Body); len(heard) != 100<<10 || err != nil {
				t.Errorf("%d bytes, %v", len(heard), err)
			}
		})
	}
	many.Wait()
	client.CloseIdleConnections()
	programs.Must(t, server.Shutdown(t.Context()))
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// A name belongs to one listener, and to nobody after it.
func TestOneListener(t *testing.T) {
	t.Parallel()
	at := path(t)
	l := programs.Got(private.Listen(at))(t)
	if !severalListen { // a program there asks first
		if other, err := private.Listen(at); err == nil {
			other.Close()
			t.Error("two listen at one name")
		}
	}
	programs.Must(t, l.Close())
	if c, err := private.Dial(t.Context(), l.Addr().String()); err == nil {
		c.Close()
		t.Error("somebody answers after the end")
	}
	programs.Must(t, programs.Got(private.Listen(at))(t).Close())
}

package tunnel_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/relay"
	"porchlight/test/programs"
)

func TestVisit(t *testing.T) {
	t.Parallel()
	addresses := make(chan [2]string, 1)
	w := start(t, options{raw: func(conn net.Conn) {
		addresses <- [2]string{conn.RemoteAddr().String(), conn.LocalAddr().String()}
		secure := tls.Server(conn, &tls.Config{Certificates: issued("notes.maya.localhost")})
		_, _ = io.Copy(secure, secure)
	}})
	w.connected(true)
	conn := w.mustVisit("notes.maya.localhost")
	programs.Must(t, echo(conn, []byte("good evening")))
	if got := <-addresses; got[0] != conn.LocalAddr().String() || got[1] != w.addr {
		t.Errorf("the visitor's addresses came through as %v, not %v → %v", got, conn.LocalAddr(), w.addr)
	}
	w.stopRelay()
	if _, err := w.visit("notes.maya.localhost"); err == nil {
		t.Error("a visit came through with the relay's listener closed")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	w := start(t, options{})
	w.connected(true)
	for _, name := range []string{"maya.localhost", "notes.maya.localhost"} {
		if err := echo(w.mustVisit(name), []byte(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"other.localhost", "a.notes.maya.localhost", "xmaya.localhost", "localhost", ""} {
		config := visitorConfig(name)
		config.InsecureSkipVerify = true
		conn, err := tls.Dial("tcp", w.addr, config)
		if err == nil {
			_ = conn.Close()
			t.Errorf("%q was let in", name)
		} else if !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("%q: %v, want the alert unrecognized_name", name, err)
		}
	}
	w.stopTunnel()
	programs.Eventually(t, "the tunnel is gone", func() bool { return w.relay.Stats().Sessions == 0 })
	if _, err := w.visit("maya.localhost"); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("with the tunnel away: %v", err)
	}
}

func TestAuthHost(t *testing.T) {
	t.Parallel()
	w := start(t, options{})
	for _, h2 := range []bool{false, true} {
		transport := &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: testAuthority().Pool()},
			ForceAttemptHTTP2: h2,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, w.addr)
			},
		}
		answer := programs.Got((&http.Client{Transport: transport}).Get("https://" + authHost + ":8443/path"))(t)
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		want := "HTTP/1.1 control.localhost:8443/path"
		if h2 {
			want = strings.Replace(want, "1.1", "2.0", 1)
		}
		if string(body) != want {
			t.Errorf("got %q, want %q", body, want)
		}
		transport.CloseIdleConnections()
	}
	answer := programs.Got(http.Get("http://" + w.addr + "/"))(t)
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != 400 || !strings.Contains(string(body), "https://") {
		t.Errorf("plain HTTP: %d %q", answer.StatusCode, body)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestThousandVisits(t *testing.T) {
	t.Parallel()
	// They all come from one address here.
	w := start(t, options{relay: func(c *relay.Config) {
		c.Limits.Handshakes, c.Limits.HandshakesPerSource = 4096, 4096
		c.Limits.Visitors, c.Limits.VisitorsPerSource, c.Limits.VisitorsPerComputer = 4096, 4096, 2048
	}})
	w.connected(true)
	var wg sync.WaitGroup
	var bad atomic.Int32
	held := make(chan struct{})
	var ready sync.WaitGroup
	const visits = 1000
	ready.Add(visits)
	// They come a few at a time: what relay and agent give a handshake is seconds,
	// and a thousand at once need more of a busy machine.
	coming := make(chan struct{}, 32)
	for i := range visits {
		wg.Go(func() {
			coming <- struct{}{}
			conn, err := w.visit("notes.maya.localhost")
			<-coming
			ready.Done()
			if err == nil {
				defer conn.Close()
				<-held // all of them are open at the same time
				err = echo(conn, bytes.Repeat(fmt.Appendf(nil, "visit %d;", i), 1000))
			}
			if err != nil && bad.Add(1) == 1 {
				t.Errorf("visit %d: %v", i, err)
			}
		})
	}
	ready.Wait()
	close(held)
	wg.Wait()
	if n := bad.Load(); n > 0 {
		t.Errorf("%d of %d visits failed; %+v", n, visits, w.relay.Stats())
	}
}

func TestHalfClose(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", "tls"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options{app: func(conn *tls.Conn) {
				// Nothing is answered before the visitor has ended its side.
				body, err := io.ReadAll(conn)
				if err == nil {
					_, _ = fmt.Fprintf(conn, "%x", sha256.Sum256(body))
				}
				_ = conn.CloseWrite()
				_ = conn.NetConn().(interface{ CloseWrite() error }).CloseWrite()
			}}
			if name == "tls" {
				o.via = func(to string) string { _, addr := startMiddlebox(t, to, "tls only"); return addr }
			}
			w := start(t, o)
			w.connected(true)
			conn := w.mustVisit("notes.maya.localhost")
			body := make([]byte, 3<<20)
			_, _ = rand.Read(body)
			programs.Got(conn.Write(body))(t)
			programs.Must(t, conn.CloseWrite())
			programs.Must(t, conn.NetConn().(*net.TCPConn).CloseWrite())
			got, err := io.ReadAll(conn)
			if err != nil || string(got) != fmt.Sprintf("%x", sha256.Sum256(body)) {
				t.Fatalf("%q, %v", got, err)
			}
			programs.Eventually(t, "the visit is over", func() bool { return w.relay.Stats().Visitors == 0 })
		})
	}
}

func TestBulkBothWays(t *testing.T) {
	t.Parallel()
	w := start(t, options{})
	w.connected(true)
	const size = 96 << 20
	conn := w.mustVisit("notes.maya.localhost")
	sent, got := sha256.New(), sha256.New()
	var wg sync.WaitGroup
	wg.Go(func() {
		random := mrand.NewChaCha8([32]byte{1})
		if _, err := io.CopyN(io.MultiWriter(conn, sent), random, size); err != nil {
			t.Error(err)
		}
		_ = conn.CloseWrite()
	})
	n, err := io.Copy(got, conn)
	wg.Wait()
	if err != nil || n != size || !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
		t.Fatalf("%d of %d bytes came back, same: %v, %v", n, size, bytes.Equal(sent.Sum(nil), got.Sum(nil)), err)
	}
}

// A flow that was a bulk flow, rests and goes on loses nothing.
func TestBulkThenRestThenBulk(t *testing.T) {
	t.Parallel()
	w := start(t, options{})
	w.connected(true)
	conn := w.mustVisit("notes.maya.localhost")
	bulk := make([]byte, 8<<20)
	_, _ = rand.Read(bulk)
	for round := range 3 {
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = conn.Write(bulk) })
		back := make([]byte, len(bulk))
		if _, err := io.ReadFull(conn, back); err != nil || !bytes.Equal(back, bulk) {
			t.Fatalf("round %d: %v", round, err)
		}
		wg.Wait()
		if round == 0 {
			time.Sleep(2500 * time.Millisecond) // longer than a silent flow keeps its pipe: what is tested here
		}
		if err := echo(conn, []byte("small")); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

func TestVisitorAborts(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	w := start(t, options{app: func(conn *tls.Conn) {
		_, err := io.Copy(conn, endless{}) // a big download
		ended <- err
	}})
	w.connected(true)
	conn := w.mustVisit("notes.maya.localhost")
	programs.Got(io.CopyN(io.Discard, conn, 4<<20))(t)
	_ = conn.NetConn().(*net.TCPConn).SetLinger(0)
	_ = conn.NetConn().Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the app was told a clean end")
		}
	case <-time.After(wait):
		t.Fatal("the app was not told that its visitor has gone")
	}
	programs.Eventually(t, "the visit is over", func() bool { return w.relay.Stats().Visitors == 0 })
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// A visitor that does not read holds up neither others nor much memory.
func TestSlowVisitor(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	w := start(t, options{app: func(conn *tls.Conn) {
		var first [1]byte
		if _, err := io.ReadFull(conn, first[:]); err != nil {
			return
		}
		if first[0] == 'e' {
			_, _ = io.Copy(conn, conn)
			return
		}
		buf := make([]byte, 64<<10)
		for {
			n, err := conn.Write(buf)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	}})
	w.connected(true)
	slow := w.mustVisit("notes.maya.localhost")
	programs.Got(slow.Write([]byte("s")))(t)
	var last int64 = -1
	programs.Eventually(t, "backpressure stops the app", func() bool {
		before := last
		last = written.Load()
		if last != before {
			time.Sleep(200 * time.Millisecond)
		}
		return last == before && last > 0
	})
	quick := w.mustVisit("notes.maya.localhost")
	_, _ = quick.Write([]byte("e"))
	programs.Must(t, echo(quick, []byte("not held up")))
	if last > 64<<20 {
		t.Errorf("%d bytes were taken for a visitor that reads none", last)
	}
}

func TestNothingReadableOnTheWay(t *testing.T) {
	t.Parallel()
	var box *middlebox
	w := start(t, options{via: func(to string) string { var addr string; box, addr = startMiddlebox(t, to, ""); return addr }})
	w.connected(true)
	const secret = "the-content-of-the-visit"
	programs.Must(t, echo(w.mustVisit("notes.maya.localhost"), []byte(secret)))
	if raw, _ := box.counts(); raw == 0 || !box.saw("notes.maya.localhost") {
		t.Fatal("the recorder did not see the data connections: it proves nothing")
	}
	for _, s := range []string{secret, credential} {
		if box.saw(s) {
			t.Errorf("%q passed in clear between agent and relay", s)
		}
	}
	// A challenge's hello must not even be seen.
	conn := w.mustVisit("maya.localhost", "acme-tls/1")
	programs.Must(t, echo(conn, []byte("challenge")))
	if conn.ConnectionState().NegotiatedProtocol != "acme-tls/1" || box.saw("acme-tls/1") {
		t.Error("a hello for acme-tls/1 passed in clear between agent and relay")
	}
}

func TestOnlyTLSPasses(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"tls only", "swallow"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			var resumed atomic.Bool
			w := start(t, options{
				via: func(to string) string { _, addr := startMiddlebox(t, to, mode); return addr },
				relay: func(c *relay.Config) {
					c.TLS.VerifyConnection = func(s tls.ConnectionState) error {
						if s.DidResume && s.NegotiatedProtocol != tunnelwire.DataALPN {
							t.Errorf("%s was resumed", s.NegotiatedProtocol)
						}
						resumed.CompareAndSwap(false, s.DidResume)
						return nil
					}
				},
			})
			w.connected(true)
			for range 2 { // the second asks for a connection after the first has brought its ticket
				conn := w.mustVisit("notes.maya.localhost")
				programs.Must(t, echo(conn, bytes.Repeat([]byte("slower "), 100_000)))
			}
			programs.Eventually(t, "a connection for a visitor resumes the session of one before", func() bool {
				_ = w.mustVisit("notes.maya.localhost").Close()
				return resumed.Load()
			})
			if !strings.Contains(w.log.String(), "lets only TLS through") {
				t.Error("the log does not say so")
			}
		})
	}
}

func TestCloseListenerTurnsAway(t *testing.T) {
	t.Parallel()
	w := start(t, options{})
	w.connected(true)
	_ = w.tunnel.Listener().Close()
	if _, err := w.tunnel.Listener().Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if _, err := w.visit("maya.localhost"); err == nil {
		t.Error("a visit came through")
	}
}

// Not parallel: it counts the process's goroutines and files.
func TestNothingIsLeftBehind(t *testing.T) {
	w := start(t, options{})
	w.connected(true)
	rounds := func(n int) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range n / 20 {
					conn, err := w.visit("notes.maya.localhost")
					if err == nil {
						err = echo(conn, []byte("x"))
						_ = conn.Close()
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		programs.Eventually(t, "all visits are over", func() bool { return w.relay.Stats().Visitors == 0 })
	}
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("open files are counted by way of /proc/self/fd")
		}
		return len(entries)
	}
	rounds(200) // the pool takes its depth
	// What may stay: parked connections, each two files and one goroutine.
	const slack = 40
	spare := func() int { return w.relay.Stats().Parked }
	goroutines, open := runtime.NumGoroutine()-spare(), files()-2*spare()
	rounds(2000)
	programs.Eventually(t, "no goroutine is left over", func() bool { return runtime.NumGoroutine()-spare() <= goroutines+slack })
	programs.Eventually(t, "no file is left over", func() bool { return files()-2*spare() <= open+slack })
	if got := w.relay.Stats().Visits; got != 2200 {
		t.Errorf("%d visits were counted", got)
	}
}

package upstream_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"strconv"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// A target is dialled where it is, and nowhere else.
func TestEachAddressAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ listens, on string }{{"127.0.0.1", ""}, {"127.0.0.1", upstream.IPv4}, {"::1", upstream.IPv6}} {
		port := programs.FreePort(t)
		ln, err := net.Listen("tcp", net.JoinHostPort(tt.listens, strconv.Itoa(port)))
		if tt.on == upstream.IPv6 && upstream.Refused(err) {
			continue // a computer without IPv6
		}
		programs.Must(t, err)
		at := upstream.Of(tt.on, port, "", agentapi.AppOptions{})
		conn, err := at.Dial(t.Context(), upstream.Checks{})
		if err != nil {
			t.Fatalf("%+v: %v", at, err)
		}
		conn.Close()
		if _, err := at.Other().Dial(t.Context(), upstream.Checks{}); !upstream.Refused(err) {
			t.Errorf("%+v: %v", at.Other(), err)
		}
		if at.Other().Other().TCP() != at.TCP() {
			t.Errorf("%+v is not the other of its other", at)
		}
		ln.Close()
		if _, err := at.Dial(t.Context(), upstream.Checks{}); !upstream.Refused(err) {
			t.Errorf("nobody at %+v: %v", at, err)
		}
	}
}

// Weakness: TLS says hello with the name of the app.
// Checked: whoever may not be spoken to hears nothing at all, and a key that is not the
// pinned one ends it after the handshake.
func TestChecksOfTLS(t *testing.T) {
	t.Parallel()
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	heard := make(chan int, 1)
	programs.ServeConns(t, ln, func(conn net.Conn) {
		n, _ := conn.Read(make([]byte, 64))
		heard <- n
	})
	https := agentapi.AppOptions{Upstream: agentapi.UpstreamHTTPS}
	at := upstream.Of("", ln.Addr().(*net.TCPAddr).Port, "", https)
	if _, err := at.Dial(t.Context(), upstream.Checks{Peer: func(agentapi.Listener) bool { return false }}); !errors.Is(err, upstream.ErrStranger) {
		t.Errorf("%v", err)
	}
	if n := <-heard; n != 0 {
		t.Errorf("a stranger heard %d bytes", n)
	}

	srv := httptest.NewUnstartedServer(nil)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	srv.StartTLS()
	defer srv.Close()
	port := srv.Listener.Addr().(*net.TCPAddr).Port
	conn := programs.Got(upstream.Of("", port, "", https).Dial(t.Context(), upstream.Checks{}))(t)
	key := upstream.KeyOf(conn.(*tls.Conn).ConnectionState())
	conn.Close()
	https.Pin = true
	yes, no := func(string) bool { return true }, func(string) bool { return false }
	for _, tt := range []struct {
		kept  string
		asked func(string) bool
		may   bool
	}{{key, nil, true}, {key, no, true}, {"", nil, false}, {"", no, false}, {"", yes, true}, {"other", no, false}, {"other", nil, false}, {"other", yes, true}} {
		conn, err := upstream.Of("", port, tt.kept, https).Dial(t.Context(), upstream.Checks{Key: tt.asked})
		if tt.may != (err == nil) || !tt.may && !errors.Is(err, upstream.ErrKey) {
			t.Errorf("%+v: %v", tt, err)
		}
		if err == nil {
			conn.Close()
		}
	}
	if _, err := upstream.Of("", port, "", agentapi.AppOptions{Upstream: "https"}).Dial(t.Context(), upstream.Checks{}, "h2"); !errors.Is(err, upstream.ErrNoHTTP2) {
		t.Errorf("no HTTP/2: %v", err)
	}
}

// An error of Dial that is a computer without the address is told apart from one of the app.
func TestRefused(t *testing.T) {
	t.Parallel()
	if upstream.Refused(nil) || upstream.Refused(errors.New("else")) || upstream.Refused(upstream.ErrStranger) || upstream.Refused(upstream.SocketError("x")) {
		t.Error("counted as nobody")
	}
}

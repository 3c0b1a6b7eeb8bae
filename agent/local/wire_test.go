package local

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// TestARecordedHopShowsNoPlaintext listens between the visitor and the relay: a
// word that the app answers with, and the visitor's path, are nowhere in what
// went over the wire; the host name in the ClientHello is.
func TestARecordedHopShowsNoPlaintext(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	h.publish(t)
	link := programs.Got(h.owner.Open(t.Context(), "notes"))(t)
	recorded := &recording{}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: h.roots()},
		DialContext:     recorded.dial,
	}
	t.Cleanup(transport.CloseIdleConnections)
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Transport: transport}
	resp := programs.Got(client.Get(link.URL))(t)
	answer, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.HasPrefix(string(answer), "notes of ") {
		t.Fatalf("%q, %v", answer, err)
	}
	wire := recorded.String()
	host := "notes." + h.account().Host
	if name, _, _ := net.SplitHostPort(host); !strings.Contains(wire, name) {
		t.Error("the recording does not even hold the ClientHello's host name; is it a recording of this visit?")
	}
	for _, secret := range []string{"notes of ", "/.porchlight/open", "HTTP/1.1", "__Host-"} {
		if strings.Contains(wire, secret) {
			t.Errorf("%q went over the wire in clear", secret)
		}
	}
}

// recording keeps every byte of the connections it dials, both ways.
type recording struct {
	mu   sync.Mutex
	wire bytes.Buffer
}

func (r *recording) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := controlapi.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return recordedConn{conn, r}, nil
}

func (r *recording) keep(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wire.Write(p)
}

func (r *recording) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wire.String()
}

type recordedConn struct {
	net.Conn
	r *recording
}

func (c recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.r.keep(p[:n])
	return n, err
}

func (c recordedConn) Write(p []byte) (int, error) {
	c.r.keep(p)
	return c.Conn.Write(p)
}

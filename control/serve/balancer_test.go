package serve

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/test/programs"
)

// TestBehindABalancer: a node whose operator names a balancer serves what comes
// through it with a PROXY header, and nothing without.
func TestBehindABalancer(t *testing.T) {
	t.Parallel()
	n, roots := runNode(t, Config{
		DataDir: t.TempDir(), Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"127.0.0.1:0"}, Grace: time.Second,
		TrustedProxies: []string{"127.0.0.0/8"},
	})
	addrs, _ := n.Addrs()
	ask := func(header string) (string, error) {
		conn := programs.Got(net.Dial("tcp", addrs[0]))(t)
		defer conn.Close()
		programs.Must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
		_, _ = io.WriteString(conn, header)
		secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: n.authHost()})
		_, _ = io.WriteString(secure, "GET /auth/pubkey HTTP/1.1\r\nHost: "+n.authHost()+"\r\nConnection: close\r\n\r\n")
		answer, err := io.ReadAll(secure)
		return string(answer), err
	}
	if answer, err := ask("PROXY TCP4 198.51.100.7 203.0.113.1 4711 443\r\n"); err != nil || !strings.Contains(answer, "publicKey") {
		t.Errorf("with a header: %q, %v", answer, err)
	}
	if answer, err := ask(""); answer != "" || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("without one: %q, %v", answer, err)
	}
}

package serve

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// runNode runs a node of its own authority until the test ends.
func runNode(t *testing.T, cfg Config) (n *Node, roots *x509.CertPool) {
	t.Helper()
	n = programs.Got(Open(t.Context(), cfg))(t)
	programs.Run(t, n.Run)
	roots = x509.NewCertPool()
	if _, rootPEM, err := n.certificates(t.Context()); err != nil || !roots.AppendCertsFromPEM(rootPEM) {
		t.Fatal("no root certificate", err)
	}
	return n, roots
}

// authHost is where people sign in at a node, and agents come.
func (n *Node) authHost() string { return n.cfg.AuthHost }

// Weakness: a computer that was disconnected kept the tunnel it had, and with it
// its visitors. Checked: the tunnel of a credential is ended by whatever ends the
// credential, with the sync that it carries, and cannot be opened again.
func TestTunnelEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	n, roots := runNode(t, Config{
		DataDir: t.TempDir(), Naming: control.Naming{Domain: "localhost"}, Listen: []string{"127.0.0.1:0"}, Grace: time.Second,
	})
	addrs, _ := n.Addrs()
	people := n.service

	// tunnel opens one and returns the relay's first answer.
	tunnel := func(credential string) (*tls.Conn, tunnelwire.Frame) {
		t.Helper()
		conn := programs.Got(tls.Dial("tcp", addrs[0], &tls.Config{
			RootCAs: roots, ServerName: n.authHost(), NextProtos: []string{controlapi.TunnelALPN},
		}))(t)
		t.Cleanup(func() { conn.Close() })
		programs.Must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
		programs.Must(t, tunnelwire.WriteFrame(conn, tunnelwire.Frame{Type: tunnelwire.Hello, Credential: credential, Instance: "test"}))
		f := programs.Got(tunnelwire.ReadFrame(conn))(t)
		return conn, f
	}
	transport := controlapi.NewTransport(roots)
	defer transport.CloseIdleConnections()

	for name, end := range map[string]func(credential string) error{
		"the computer leaves": func(credential string) error {
			c := controlapi.Client{BaseURL: n.AuthURL(), Credential: credential, HTTP: &http.Client{Transport: transport}}
			return c.EndCredential(t.Context())
		},
		"the credential is replaced": func(string) error {
			_, err := people.Computers.Ensure(t.Context(), "maya@example.com", "maya")
			return err
		},
		"the owner disconnects it": func(string) error {
			a, err := people.Accounts.ByEmail(t.Context(), "maya@example.com")
			if err != nil {
				return err
			}
			return people.Computers.Disconnect(t.Context(), a.ID, "maya")
		},
		"the owner removes it": func(string) error {
			a, err := people.Accounts.ByEmail(t.Context(), "maya@example.com")
			if err != nil {
				return err
			}
			return people.Computers.Remove(t.Context(), a.ID, "maya")
		},
	} {
		e := programs.Got(people.Computers.Ensure(t.Context(), "maya@example.com", "maya"))(t)
		conn, f := tunnel(e.Credential)
		if f.Type != tunnelwire.Welcome {
			t.Fatalf("%s: the tunnel is answered with %+v", name, f)
		}
		if s := synced(t, conn); s.Computer != e.Computer || s.Change == 0 || s.Line == "" {
			t.Errorf("it is told %+v", s)
		}
		if err := end(e.Credential); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for refused := false; ; {
			f, err := tunnelwire.ReadFrame(conn)
			if err != nil {
				if !refused || !errors.Is(err, io.EOF) {
					t.Errorf("%s: the tunnel ended with %v, told why: %t", name, err, refused)
				}
				break
			}
			if len(f.Part) > 0 {
				t.Errorf("%s: it is told another snapshot", name)
			}
			refused = refused || f.Type == tunnelwire.Refused && f.Code == tunnelwire.CodeUnauthorized
		}
		if _, f := tunnel(e.Credential); f.Type != tunnelwire.Refused || f.Code != tunnelwire.CodeUnauthorized {
			t.Errorf("%s: opened again, it is answered with %+v", name, f)
		}
	}
}

// synced asks for a snapshot by the tunnel, and reads it.
func synced(t *testing.T, conn *tls.Conn) (s controlapi.Snapshot) {
	t.Helper()
	programs.Must(t, tunnelwire.WriteFrame(conn, tunnelwire.Frame{Type: tunnelwire.Sync}))
	var told []byte
	for {
		f := programs.Got(tunnelwire.ReadFrame(conn))(t)
		if told = append(told, f.Part...); f.Type == tunnelwire.Synced && !f.More {
			break
		}
	}
	programs.Must(t, json.Unmarshal(told, &s))
	return s
}

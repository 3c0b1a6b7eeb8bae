package peers

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/test/programs"
)

// ring is what nodes read from their store: secrets that change while they run.
type ring struct{ atomic.Pointer[[][]byte] }

func (r *ring) set(secrets ...[]byte) { r.Store(&secrets) }

func (r *ring) secrets() ([][]byte, error) { return *r.Load(), nil }

var oldSecret, newSecret = bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 32)

// Weakness: who had an old copy of the store was a node for ever, whatever was rotated.
// Attack: such a one keeps what it got before a rotation, and comes again after it.
// Checked: once the old secret has ended the old copy is refused at the port.
func TestAnOldCopyIsNoNode(t *testing.T) {
	t.Parallel()
	var r ring
	r.set(newSecret, oldSecret)
	three, refused := listening(t, Config{Secrets: r.secrets}, "three", declines)
	old := keysOf(t, "one", oldSecret)
	config := old.client("three")
	config.InsecureSkipVerify = true //nolint:gosec // a thief takes whom it finds
	for _, during := range []bool{true, false} {
		if !during {
			r.set(newSecret)
		}
		conn := tls.Client(dial(t, three.cfg.Address), config)
		_, _ = conn.Write(asks(netip.AddrPort{}, netip.AddrPort{}, "hello"))
		if got, _ := io.ReadAll(conn); len(got) > 0 != during {
			t.Errorf("during the rotation %v: answered %x", during, got)
		}
	}
	programs.Eventually(t, "one connection is refused", func() bool { return refused.Load() == 1 })
}

// Nodes that have met go on with what they agreed on, and not beyond the secret by which they
// did.
func TestNodesResume(t *testing.T) {
	t.Parallel()
	var r ring
	r.set(oldSecret)
	two, _ := listening(t, Config{Secrets: r.secrets}, "two", declines)
	one := programs.Got(newKeys(r.secrets, "one", time.Now))(t)
	request := asks(netip.AddrPort{}, netip.AddrPort{}, "hello")
	for i, want := range []bool{false, true, false, true} {
		if i == 2 {
			r.set(newSecret)
		}
		conn := tls.Client(dial(t, two.cfg.Address), one.client("two"))
		programs.Got(conn.Write(request))(t)
		if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, []byte{peerUnknown}) {
			t.Fatalf("%x, %v", got, err)
		}
		if got := conn.ConnectionState().DidResume; got != want {
			t.Errorf("connection %d goes on with what was before: %t", i, got)
		}
	}
}

// Where no secret can be had nobody is a node.
func TestNobodyIsANodeWithoutASecret(t *testing.T) {
	t.Parallel()
	var r ring
	r.set(oldSecret)
	p := programs.Got(newKeys(r.secrets, "one", time.Now))(t)
	r.set()
	if takes := p.known(); !takes.ClientCAs.Equal(x509.NewCertPool()) {
		t.Error("somebody is known")
	}
	if _, err := p.certificate(); err == nil {
		t.Error("there is a certificate")
	}
}

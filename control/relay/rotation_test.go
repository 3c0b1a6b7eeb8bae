package relay

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

// Weakness: who had an old copy of the store was a node for ever, whatever was rotated.
// Attack: such a one keeps what it got before a rotation, and comes again after it.
// Checked: three nodes pass visitors on at every step of a planned rotation, also while
// some have read it and others not; once the old secret has ended the old copy is
// refused at the port; the same at once after a leak.
func TestPeersGoOverToAnotherSecret(t *testing.T) {
	t.Parallel()
	for what, steps := range map[string][][][]byte{
		"planned":      {{oldSecret, newSecret}, {newSecret, oldSecret}, {newSecret}},
		"after a leak": {{newSecret}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store := sharedStore(t, nil)
			var nodes [3]node
			var rings [3]ring
			for i, name := range []string{"one", "two", "three"} {
				rings[i].set(oldSecret)
				nodes[i] = serveNode(t, store, name, func(c *Config) { c.Peers.Secrets = rings[i].secrets })
			}
			for _, n := range nodes {
				n.sees(t, 3)
			}
			a := connectAgent(t, nodes[2].addr, "maya")
			passOn := func() {
				t.Helper()
				for _, n := range nodes[:2] {
					visitor, data, _ := a.visitedAt(n.addr)
					exchange(t, data, visitor, "an answer")
				}
			}
			passOn()
			for _, secrets := range steps {
				for i := range rings {
					rings[i].set(secrets...)
					if len(steps) > 1 {
						passOn()
					}
				}
				passOn()
			}
			hello := recordHello(t, &tls.Config{ServerName: "notes.maya.localhost"})
			old, err := newPeerTLS(always(oldSecret), "one", time.Now)
			programs.Must(t, err)
			config := old.client("three")
			config.InsecureSkipVerify = true //nolint:gosec // a thief takes whom it finds
			conn := tls.Client(dial(t, nodes[2].peer), config)
			_, _ = conn.Write(appendPeerRequest(nil, netip.AddrPort{}, netip.AddrPort{}, hello))
			if got, _ := io.ReadAll(conn); len(got) > 0 {
				t.Errorf("the old copy passes a visitor on: %x", got)
			}
			passOn()
		})
	}
}

var oldSecret, newSecret = bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 32)

// Nodes that have met go on with what they agreed on, and not beyond the secret by which they
// did.
func TestNodesResume(t *testing.T) {
	t.Parallel()
	var r ring
	r.set(oldSecret)
	two := serveNode(t, sharedStore(t, nil), "two", func(c *Config) { c.Peers.Secrets = r.secrets })
	one, err := newPeerTLS(r.secrets, "one", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	request := appendPeerRequest(nil, netip.AddrPort{}, netip.AddrPort{}, recordHello(t, &tls.Config{ServerName: "maya.localhost"}))
	for i, want := range []bool{false, true, false, true} {
		if i == 2 {
			r.set(newSecret)
		}
		conn := tls.Client(dial(t, two.peer), one.client("two"))
		if _, err := conn.Write(request); err != nil {
			t.Fatal(err)
		}
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
	p, err := newPeerTLS(r.secrets, "one", time.Now)
	programs.Must(t, err)
	r.set()
	if _, _, takes := p.known(); !takes.ClientCAs.Equal(x509.NewCertPool()) {
		t.Error("somebody is known")
	}
	if _, err := p.certificate(); err == nil {
		t.Error("there is a certificate")
	}
}

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/internal/localca"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that a test moves.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Now().UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

// rig is a Keeper over a real authority that counts what it issues.
type rig struct {
	*Keeper
	clock  *clock
	ca     *localca.CA
	issued atomic.Int64
	broken atomic.Bool
	gone   sync.Map // names no longer allowed
}

var errBroken = errors.New("the authority is away")

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{clock: newClock()}
	ca, err := localca.Create(filepath.Join(t.TempDir(), "ca"), localca.Options{Names: []string{"localhost"}, Now: r.clock.now})
	programs.Must(t, err)
	r.ca = ca
	r.Keeper = New(Config{
		Issue: func(name string) (*tls.Certificate, error) {
			r.issued.Add(1)
			if r.broken.Load() {
				return nil, errBroken
			}
			return ca.Issue(name)
		},
		Allowed: func(name string) bool {
			_, gone := r.gone.Load(name)
			return !gone && strings.HasSuffix(name, ".maya.localhost")
		},
		Now: r.clock.now,
	})
	return r
}

func TestCertificateIsKeptPerName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := programs.Got(r.Certificate("notes.maya.localhost"))(t)
	again := programs.Got(r.Certificate("NOTES.maya.Localhost."))(t)
	if first != again {
		t.Error("another spelling of the name made another certificate")
	}
	other := programs.Got(r.Certificate("photos.maya.localhost"))(t)
	if err := other.Leaf.VerifyHostname("notes.maya.localhost"); err == nil {
		t.Error("one certificate speaks for two names")
	}
	if n := r.issued.Load(); n != 2 {
		t.Errorf("%d certificates were made, want 2", n)
	}
}

func TestRefusedNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.gone.Store("old.maya.localhost", true)
	for _, name := range []string{"", ".", "maya.localhost", "example.com", "old.maya.localhost"} {
		if _, err := r.Certificate(name); !errors.Is(err, errNotAllowed) {
			t.Errorf("Certificate(%q) = %v, want errNotAllowed", name, err)
		}
	}
	if n := r.issued.Load(); n != 0 {
		t.Errorf("%d certificates were made for names that are not ours", n)
	}
	// Allowed, but not a name at all: the authority has the last word.
	if _, err := r.Certificate("a b.maya.localhost"); err == nil || errors.Is(err, errNotAllowed) {
		t.Errorf("a malformed name: %v", err)
	}
}

// All callers are inside Certificate before the one that issues may go on.
func TestOneIssuesForAll(t *testing.T) {
	t.Parallel()
	const visitors = 50
	r := newRig(t)
	var arrived sync.WaitGroup
	arrived.Add(visitors)
	release := make(chan struct{})
	allowed, issue := r.cfg.Allowed, r.cfg.Issue
	r.cfg.Allowed = func(name string) bool { arrived.Done(); return allowed(name) }
	r.cfg.Issue = func(name string) (*tls.Certificate, error) { <-release; return issue(name) }

	got := make([]*tls.Certificate, visitors)
	var wg sync.WaitGroup
	for i := range visitors {
		wg.Go(func() {
			cert, err := r.Certificate("notes.maya.localhost")
			if err != nil {
				t.Error(err)
			}
			got[i] = cert
		})
	}
	arrived.Wait()
	close(release)
	wg.Wait()
	for _, cert := range got {
		if cert != got[0] {
			t.Fatal("visitors were given different certificates")
		}
	}
	if n := r.issued.Load(); n != 1 {
		t.Errorf("%d certificates were made, want 1", n)
	}
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	get := func() *tls.Certificate {
		t.Helper()
		return programs.Got(r.Certificate("notes.maya.localhost"))(t)
	}
	first := get()
	third := first.Leaf.NotAfter.Sub(first.Leaf.NotBefore) / 3
	r.clock.nanos.Store(first.Leaf.NotAfter.Add(-third - time.Minute).UnixNano())
	if get() != first {
		t.Fatal("renewed before a third of its life remained")
	}

	// The authority is away when renewal is due: the old one serves on, and the
	// authority is not asked again at every visit.
	r.broken.Store(true)
	r.clock.advance(2 * time.Minute)
	before := r.issued.Load()
	for range 5 {
		if get() != first {
			t.Fatal("a failed renewal lost the certificate at hand")
		}
	}
	if n := r.issued.Load() - before; n != 1 {
		t.Errorf("the authority was asked %d times within a minute, want 1", n)
	}

	r.broken.Store(false)
	r.clock.advance(retryAfter)
	second := get()
	if second == first || !second.Leaf.NotAfter.After(first.Leaf.NotAfter) {
		t.Fatal("not renewed once the authority was back")
	}

	// Past its end a certificate is not served, whatever the authority says.
	r.broken.Store(true)
	r.clock.nanos.Store(second.Leaf.NotAfter.UnixNano())
	if _, err := r.Certificate("notes.maya.localhost"); !errors.Is(err, errBroken) {
		t.Fatalf("an expired certificate: %v", err)
	}
}

func TestKeptNamesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cert := programs.Got(r.ca.Issue("app-0.maya.localhost"))(t)
	// One key for all of them: this is about the count.
	r.cfg.Issue = func(name string) (*tls.Certificate, error) {
		leaf := *cert.Leaf
		leaf.DNSNames = []string{name}
		return &tls.Certificate{Certificate: cert.Certificate, PrivateKey: cert.PrivateKey, Leaf: &leaf}, nil
	}
	for i := range maxNames + 20 {
		r.clock.advance(time.Millisecond)
		programs.Got(r.Certificate(fmt.Sprintf("app-%d.maya.localhost", i)))(t)
		r.clock.advance(time.Millisecond)
		if _, err := r.Certificate("app-0.maya.localhost"); err != nil { // always in use
			t.Fatal(err)
		}
	}
	if n := len(r.kept); n != maxNames {
		t.Errorf("%d certificates are kept, want %d", n, maxNames)
	}
	if r.kept["app-0.maya.localhost"] == nil || r.kept["app-1.maya.localhost"] != nil {
		t.Error("what goes must be what was unused for longest")
	}
}

func TestIssueMustFitTheName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	wrong := programs.Got(r.ca.Issue("photos.maya.localhost"))(t)
	for _, cert := range []*tls.Certificate{nil, {}, wrong} {
		r.cfg.Issue = func(string) (*tls.Certificate, error) { return cert, nil }
		if got, err := r.Certificate("notes.maya.localhost"); err == nil {
			t.Errorf("%v was served", got)
		}
	}
}

// serve accepts handshakes until the test ends; each answers one byte, by which
// a client has read the ticket of TLS 1.3 that comes before it.
func (r *rig) serve(t *testing.T) (addr string) {
	t.Helper()
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	cfg := TLSConfig(r)
	programs.ServeConns(t, ln, func(c net.Conn) {
		tc := tls.Server(c, cfg.Clone())
		if tc.Handshake() == nil {
			_, _ = tc.Write([]byte("."))
			_, _ = io.Copy(io.Discard, tc)
		}
	})
	return ln.Addr().String()
}

// anyName caches one session whatever the server's name, as a hostile client
// would.
type anyName struct{ held *tls.ClientSessionState }

func (c *anyName) Get(string) (*tls.ClientSessionState, bool) { return c.held, c.held != nil }
func (c *anyName) Put(_ string, s *tls.ClientSessionState)    { c.held = s }

func (r *rig) dial(addr, name string, version uint16, cache tls.ClientSessionCache) (tls.ConnectionState, error) {
	c, err := tls.Dial("tcp", addr, &tls.Config{
		ServerName: name, RootCAs: r.ca.Pool(), MinVersion: version, MaxVersion: version,
		NextProtos: []string{"h2", "http/1.1"}, ClientSessionCache: cache, Time: r.clock.now,
		// The client's own check of a resumed name would hide the server's;
		// verification is not what this client is for.
		InsecureSkipVerify: cache != nil,
	})
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		return tls.ConnectionState{}, err
	}
	return c.ConnectionState(), nil
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	addr := r.serve(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cs, err := r.dial(addr, "notes.maya.localhost", version, nil)
		if err != nil {
			t.Fatalf("%s: %v", tls.VersionName(version), err)
		}
		if cs.NegotiatedProtocol != "h2" {
			t.Errorf("negotiated %q", cs.NegotiatedProtocol)
		}
		if _, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: "notes.maya.localhost", Roots: r.ca.Pool(),
			Intermediates: pool(cs.PeerCertificates[1:])}); err != nil {
			t.Error(err)
		}
		const unrecognizedName = tls.AlertError(112)                // RFC 6066, 3
		for _, name := range []string{"example.com", "192.0.2.1"} { // the second sends no name
			_, err := r.dial(addr, name, version, nil)
			var op *net.OpError
			if !errors.As(err, &op) || op.Err.Error() != unrecognizedName.Error() {
				t.Errorf("%s, %q: %v, want %v", tls.VersionName(version), name, err, unrecognizedName)
			}
		}
	}
	if _, err := r.dial(addr, "notes.maya.localhost", tls.VersionTLS11, nil); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

func pool(certs []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certs {
		p.AddCert(c)
	}
	return p
}

// Weakness: a resumed session skips the certificate, and with it the question
// whether the name is served. Attack: keep a ticket of one app and present it
// for another, or after the app is gone. Checked: the first is a full handshake,
// the second is refused as a new visitor would be.
func TestResumptionIsBoundToTheName(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			addr := r.serve(t)
			cache := &anyName{}
			if cs, err := r.dial(addr, "notes.maya.localhost", version, cache); err != nil || cs.DidResume {
				t.Fatal(cs.DidResume, err)
			}
			ticket := cache.held
			if ticket == nil {
				t.Fatal("no ticket was given out")
			}
			if cs, err := r.dial(addr, "Notes.maya.localhost", version, cache); err != nil || !cs.DidResume {
				t.Fatalf("the same name should resume: %v %v", cs.DidResume, err)
			}
			cache.held = ticket
			if cs, err := r.dial(addr, "photos.maya.localhost", version, cache); err != nil || cs.DidResume {
				t.Errorf("a ticket of one name resumed under another: %v %v", cs.DidResume, err)
			}
			cache.held = ticket
			r.gone.Store("notes.maya.localhost", true)
			if cs, err := r.dial(addr, "notes.maya.localhost", version, cache); err == nil {
				t.Errorf("a name that is gone was served: resumed %v", cs.DidResume)
			}
		})
	}
}

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"porchlight/internal/acmeorder"
	"porchlight/test/programs"
)

// TestRefusedCertificateRests: an authority that refuses is not asked again by
// every visitor, and the owner is told. (Certificates that are issued are tested
// with a real authority, over the whole way, in test/connect.)
func TestRefusedCertificateRests(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	directory := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "not today", http.StatusForbidden)
	}))
	defer directory.Close()
	roots := x509.NewCertPool()
	roots.AddCert(directory.Certificate())
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	told := make(chan struct{}, 8)
	a := NewACME(ACMEConfig{
		Dir: t.TempDir(), Directory: directory.URL, RootCAs: roots, Now: clock,
		Allowed:   func(name string) bool { return name == "notes.maya.test" },
		OnTrouble: func() { told <- struct{}{} },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, func() []string { return nil }, nil) }()
	defer func() { cancel(); <-ended }()

	if err := shake(t, a, "notes.maya.test"); err == nil {
		t.Fatal("there is a certificate nobody issued")
	}
	<-told
	if trouble := a.Trouble().String(); !strings.Contains(trouble, "notes.maya.test") {
		t.Errorf("the owner is told %q", trouble)
	}
	if s, known := a.State("notes.maya.test"); !known || s.Problem.String() != a.Trouble().String() || !s.NotAfter.IsZero() {
		t.Errorf("of the certificate that was refused the owner is told %+v, %t", s, known)
	}
	if s, known := a.State("wiki.maya.test"); known {
		t.Errorf("of a certificate nobody asked for the owner is told %+v", s)
	}
	before := asked.Load()
	if before == 0 {
		t.Fatal("the authority was not asked")
	}
	if err := shake(t, a, "notes.maya.test"); err == nil {
		t.Error("there is a certificate nobody issued")
	}
	if n := asked.Load(); n != before {
		t.Errorf("the next visitor made the authority be asked %d times more", n-before)
	}
	mu.Lock()
	now = now.Add(firstRest)
	mu.Unlock()
	if err := shake(t, a, "notes.maya.test"); err == nil || asked.Load() == before {
		t.Errorf("after the rest the authority was not asked again: %v", err)
	}
	if rest := a.restOf("notes.maya.test"); rest != 2*firstRest {
		t.Errorf("the second rest is %v", rest)
	}

	before = asked.Load()
	if err := shake(t, a, "other.maya.test"); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("a name that is not served: %v", err)
	}
	if asked.Load() != before {
		t.Error("a stranger's name made the authority be asked")
	}
}

// silent is an authority that never answers.
type silent struct{ asked, ended chan error }

func (silent) IssuerKey() string { return "silent" }

func (s silent) Issue(ctx context.Context, _ *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	s.asked <- nil
	<-ctx.Done()
	s.ended <- ctx.Err()
	return nil, ctx.Err()
}

// TestOrdersEndWithRun: an order under way is given up with the agent, whoever
// waits for it, and nobody is told that it was refused.
func TestOrdersEndWithRun(t *testing.T) {
	t.Parallel()
	a := NewACME(ACMEConfig{
		Dir: t.TempDir(), Allowed: func(string) bool { return true },
		OnTrouble: func() { t.Error("the owner is told of trouble") },
	})
	authority := silent{make(chan error, 1), make(chan error, 1)}
	a.issuer = authority
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx, func() []string { return nil }, nil) }()
	visited := make(chan error, 1)
	go func() { visited <- shake(t, a, "notes.maya.test") }()
	await := func(what string, c <-chan error) error {
		t.Helper()
		select {
		case err := <-c:
			return err
		case <-time.After(programs.Patience):
			t.Fatalf("not within 20 seconds: %s", what)
			return nil
		}
	}
	await("the authority is asked", authority.asked)
	cancel()
	await("the order ends", authority.ended)
	if err := await("the visitor is turned away", visited); err == nil {
		t.Error("there is a certificate nobody issued")
	}
	if err := await("Run ends", ran); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOnlyACMENegotiatesItsChallenge(t *testing.T) {
	t.Parallel()
	if !slices.Contains(TLSConfig(NewACME(ACMEConfig{})).NextProtos, acmeorder.ChallengeALPN) {
		t.Error("the authority could not see its challenge answered")
	}
	if slices.Contains(TLSConfig(New(Config{})).NextProtos, acmeorder.ChallengeALPN) {
		t.Error("a challenge is answered that nobody set")
	}
}

// shake is one handshake with a server of src, as the visitor sees it.
func shake(t *testing.T, src Source, name string) error {
	t.Helper()
	here, there := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		defer there.Close()
		_ = tls.Server(there, TLSConfig(src)).HandshakeContext(t.Context()) // the visitor says how it went
	}()
	defer func() { here.Close(); <-served }()
	return tls.Client(here, &tls.Config{ServerName: name, InsecureSkipVerify: true}).HandshakeContext(t.Context())
}

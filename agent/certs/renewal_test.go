package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"

	"porchlight/test/programs"
)

// inMemory is an authority without a network, so that simulated time can pass.
type inMemory struct {
	key    *ecdsa.PrivateKey
	life   time.Duration
	away   atomic.Bool
	asked  atomic.Int64
	issued atomic.Int64
}

func newInMemory(t *testing.T, life time.Duration) *inMemory {
	t.Helper()
	key := programs.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	return &inMemory{key: key, life: life}
}

func (*inMemory) IssuerKey() string { return "in-memory" }

func (m *inMemory) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	m.asked.Add(1)
	if m.away.Load() {
		return nil, errors.New("not today")
	}
	now := time.Now()
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(m.issued.Add(1)), Subject: pkix.Name{CommonName: csr.DNSNames[0]}, DNSNames: csr.DNSNames,
		NotBefore: now, NotAfter: now.Add(m.life), KeyUsage: x509.KeyUsageDigitalSignature,
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "in memory"}}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, csr.PublicKey, m.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// TestHalfAYearOfRenewals is certificates over simulated time: renewed by
// themselves when a third of their life is left; kept while the authority is
// away, with the owner told before they end and of their end; had again when it
// is back; and left alone once the app is gone.
func TestHalfAYearOfRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const life, day = 90 * 24 * time.Hour, 24 * time.Hour
		authority := newInMemory(t, life)
		var mu sync.Mutex
		live := map[string]bool{"notes.maya.test": true, "wiki.maya.test": true}
		names := func() (out []string) {
			mu.Lock()
			defer mu.Unlock()
			for name := range live {
				out = append(out, name)
			}
			return out
		}
		var told atomic.Int64
		changed := make(chan struct{}, 1)
		a := NewACME(ACMEConfig{
			Dir:       t.TempDir(),
			Allowed:   func(name string) bool { mu.Lock(); defer mu.Unlock(); return live[name] },
			OnTrouble: func() { told.Add(1) },
		})
		a.issuer = authority
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx, names, changed) }()
		defer func() { cancel(); <-ended }()
		served := func(name string) *x509.Certificate {
			t.Helper()
			here, there := net.Pipe()
			defer here.Close()
			go func() {
				defer there.Close()
				_ = tls.Server(there, TLSConfig(a)).HandshakeContext(ctx) // the visitor says how it went
			}()
			visitor := tls.Client(here, &tls.Config{ServerName: name, InsecureSkipVerify: true})
			if err := visitor.HandshakeContext(ctx); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return visitor.ConnectionState().PeerCertificates[0]
		}
		synctest.Wait()
		for passed := time.Duration(0); passed < 170*day; passed += day {
			for _, name := range names() {
				if left := time.Until(served(name).NotAfter); left < life/3-day {
					t.Fatalf("after %v the certificate of %s has %v left", passed, name, left)
				}
			}
			time.Sleep(day)
		}
		if s, known := a.State("notes.maya.test"); !known || !s.Problem.IsZero() || !s.NotAfter.Equal(served("notes.maya.test").NotAfter) || s.NotAfter.Sub(s.RenewsAfter) != life/3 {
			t.Errorf("of a certificate in order the owner is told %+v, %t", s, known)
		}
		if ends := a.Ends(); !ends.IsZero() {
			t.Errorf("with all in order one ends at %v", ends)
		}
		// Two names, had once and renewed after 60 and 120 days.
		if n := authority.issued.Load(); n != 2*3 || a.Trouble().String() != "" || told.Load() != 0 {
			t.Errorf("%d certificates were issued; the owner was told %d times: %q", n, told.Load(), a.Trouble().String())
		}

		// The app goes: its certificate is renewed no longer.
		mu.Lock()
		delete(live, "wiki.maya.test")
		mu.Unlock()
		changed <- struct{}{}
		authority.away.Store(true)
		ends := served("notes.maya.test").NotAfter
		time.Sleep(time.Until(ends) - life/4)
		if a.Trouble().String() != "" || !a.Ends().IsZero() || authority.asked.Load() == authority.issued.Load() {
			t.Errorf("a week into renewing, which was tried %d times, the owner is told %q", authority.asked.Load()-authority.issued.Load(), a.Trouble().String())
		}
		time.Sleep(time.Until(ends) - day)
		if got := a.Trouble().String(); !strings.Contains(got, "notes.maya.test") || !strings.Contains(got, ends.Format("2 January")) {
			t.Errorf("a day before the end the owner is told %q", got)
		}
		if got := a.Ends(); !got.Equal(ends) {
			t.Errorf("a day before the end, %v, the server is told of %v", ends, got)
		}
		if !served("notes.maya.test").NotAfter.Equal(ends) {
			t.Error("the certificate at hand was lost")
		}
		if s, _ := a.State("notes.maya.test"); s.Problem.String() != a.Trouble().String() || !s.NotAfter.Equal(ends) {
			t.Errorf("a day before the end the owner is told %+v of the certificate", s)
		}
		time.Sleep(2 * day)
		if got := a.Trouble().String(); !strings.Contains(got, "has ended") {
			t.Errorf("after the end the owner is told %q", got)
		}
		if got := a.Ends(); !got.Equal(ends) {
			t.Errorf("after the end, %v, the server is told of %v", ends, got)
		}
		authority.away.Store(false)
		time.Sleep(day)
		if left := time.Until(served("notes.maya.test").NotAfter); left < life-2*day || a.Trouble().String() != "" || !a.Ends().IsZero() {
			t.Errorf("with the authority back the certificate has %v left, and the owner is told %q", left, a.Trouble().String())
		}
		before := authority.asked.Load()
		mu.Lock()
		delete(live, "notes.maya.test")
		mu.Unlock()
		changed <- struct{}{}
		time.Sleep(2 * life)
		if n := authority.asked.Load() - before; n != 0 {
			t.Errorf("with no app left the authority was asked %d times", n)
		}
	})
}

// Weakness: what an agent knows of renewals is in its memory. Checked: one that starts with a
// certificate that it then cannot renew says so as well, and of one that is still good for a
// while nothing.
func TestEndsAfterAStart(t *testing.T) {
	dir := t.TempDir() // an order that was cut off may still be writing there when the bubble's own go
	synctest.Test(t, func(t *testing.T) {
		const life, day = 90 * 24 * time.Hour, 24 * time.Hour
		authority := newInMemory(t, life)
		run := func(lasts time.Duration) (ends time.Time) {
			a := NewACME(ACMEConfig{Dir: dir, Allowed: func(string) bool { return true }})
			if !a.Ends().IsZero() {
				t.Error("before it runs one ends")
			}
			a.issuer = authority
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- a.Run(ctx, func() []string { return []string{"notes.maya.test"} }, nil) }()
			time.Sleep(lasts)
			ends = a.Ends()
			cancel()
			<-ended
			return ends
		}
		began := time.Now()
		if ends := run(time.Minute); !ends.IsZero() || authority.issued.Load() != 1 {
			t.Fatalf("a new one ends at %v", ends)
		}
		authority.away.Store(true)
		time.Sleep(life * 3 / 4)
		if ends := run(time.Hour); !ends.IsZero() || authority.asked.Load() < 2 {
			t.Errorf("with a quarter of its life left it ends at %v, asked %d times", ends, authority.asked.Load())
		}
		time.Sleep(life / 6)
		if ends := run(time.Hour); ends.Sub(began.Add(life)).Abs() > day {
			t.Errorf("near its end it ends at %v, not %v", ends, began.Add(life))
		}
	})
}

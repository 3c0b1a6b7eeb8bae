// Package acmeorder sets certmagic up to have certificates issued over ACME (RFC
// 8555) and renewed, in the one way that both programs need: an agent for the
// names of its apps, a server for its auth host.
//
// Neither has a port of its own for the authority to come to. The authority makes
// sure of a name by the DNS (ByDNS), or by connecting to it (TLS-ALPN-01, RFC 8737), through the
// listener that visitors use, so what New returns has to answer that handshake
// where TLS ends. Nobody is asked anything on a terminal, and nothing is logged
// here: what matters comes to Config.OnEvent.
package acmeorder

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3"
	"go.uber.org/zap"
)

// ChallengeALPN is the protocol of the TLS-ALPN-01 challenge.
const ChallengeALPN = "acme-tls/1"

// IsChallenge tells the authority's validating connection (RFC 8737, section 3).
func IsChallenge(hello *tls.ClientHelloInfo) bool {
	return slices.Equal(hello.SupportedProtos, []string{ChallengeALPN})
}

// Config of New. Storage is required.
type Config struct {
	Storage certmagic.Storage // of account, certificates and keys
	// Copy is kept beside a storage that is elsewhere, and serves while that does not
	// answer; nil for none.
	Copy certmagic.Storage
	// Directory is the URL of the authority's ACME directory; empty means Let's
	// Encrypt.
	Directory string
	// RootCAs the directory's own certificate must lead to; nil: the system's.
	RootCAs *x509.CertPool
	// Capacity bounds the certificates in memory; zero means that nothing does.
	Capacity int
	// OnEvent is told what certmagic does, see certmagic.Config; nil for not.
	OnEvent func(ctx context.Context, event string, data map[string]any) error
}

// New begins to renew what the returned configuration is told to manage, until
// the returned cache is stopped, which the caller has to see to.
func New(c Config) (*certmagic.Config, *certmagic.Cache, error) {
	port, err := sparePort()
	if err != nil {
		return nil, nil, fmt.Errorf("prepare for the certificate authority: %w", err)
	}
	quiet := zap.NewNop()
	var magic *certmagic.Config
	ready := make(chan struct{}) // closed once magic is there
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { <-ready; return magic, nil },
		Capacity:         c.Capacity,
		Logger:           quiet,
	})
	magic = certmagic.New(cache, certmagic.Config{Storage: c.Storage, LocalCache: c.Copy, OnEvent: c.OnEvent, Logger: quiet})
	issuer := c.issuer()
	issuer.DisableHTTPChallenge = true
	// The library insists on a listener of its own for the challenge; the
	// authority never comes to that one.
	issuer.ListenHost, issuer.AltTLSALPNPort = "127.0.0.1", port
	magic.Issuers = []certmagic.Issuer{unattended{certmagic.NewACMEIssuer(magic, issuer)}}
	close(ready)
	return magic, cache, nil
}

func (c Config) issuer() certmagic.ACMEIssuer {
	return certmagic.ACMEIssuer{
		CA: cmp.Or(c.Directory, certmagic.LetsEncryptProductionCA), Agreed: true, TrustedRoots: c.RootCAs, Logger: zap.NewNop(),
	}
}

// ByDNS issues for the same account what magic does not order by itself: names whose challenges
// solver has be in the DNS (DNS-01).
func ByDNS(magic *certmagic.Config, c Config, solver acmez.Solver) certmagic.Issuer {
	issuer := c.issuer()
	issuer.DNS01Solver = solver
	return unattended{certmagic.NewACMEIssuer(magic, issuer)}
}

// unattended never asks for an e-mail address on the terminal: an account at the
// authority needs none.
type unattended struct{ *certmagic.ACMEIssuer }

// PreCheck implements certmagic.PreChecker.
func (u unattended) PreCheck(ctx context.Context, names []string, _ bool) error {
	return u.ACMEIssuer.PreCheck(ctx, names, false)
}

func sparePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

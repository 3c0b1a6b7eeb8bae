package relay

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"
)

// Nodes know each other by certificates of an authority whose key each of them
// makes from the secret in their store: whoever can read the store is a node, and
// nobody else is. Certificates live in memory only.
const (
	peerALPN  = "porchlight-peer/1" // a visitor
	peerALPN2 = "porchlight-peer/2" // the same; and the other side takes vouchers
	// peerKeyALPN is for a key to make vouchers with.
	peerKeyALPN    = "porchlight-peer-key/1"
	newsALPN       = "porchlight-news/1"
	peerSuffix     = ".peer.porchlight.internal"
	peerSecretSize = 32 // bytes, at least

	sessionsKept = 64 // of other nodes, to connect to them again with less work

	peerCertLife  = 7 * 24 * time.Hour
	peerCertRenew = 24 * time.Hour
	peerCertSkew  = time.Hour // by which nodes' clocks may differ
)

// peerTLS makes both sides' configuration of one node.
type peerTLS struct {
	node  string
	hosts []string // besides the node's own name, in its certificate
	ca    *x509.Certificate
	key   ed25519.PrivateKey
	pool  *x509.CertPool
	now   func() time.Time
	cache tls.ClientSessionCache

	mu   sync.Mutex // guards what follows
	cert *tls.Certificate
	made time.Time
}

func newPeerTLS(secret []byte, node string, now func() time.Time) (*peerTLS, error) {
	if len(secret) < peerSecretSize {
		return nil, errors.New("relay: the peers' secret is too short")
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "porchlight relay peers 1", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	p := &peerTLS{
		node: node, key: ed25519.NewKeyFromSeed(seed), pool: x509.NewCertPool(), now: now,
		cache: tls.NewLRUClientSessionCache(sessionsKept),
	}
	// The same on every node, byte for byte.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Porchlight relays"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(nil, template, template, p.key.Public(), p.key)
	if err == nil {
		p.ca, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("relay: the peers' authority: %w", err)
	}
	p.pool.AddCert(p.ca)
	return p, nil
}

// certificate is this node's, made anew every day.
func (p *peerTLS) certificate() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.cert != nil && now.Sub(p.made) < peerCertRenew {
		return p.cert, nil
	}
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, DNSNames: []string{p.node + peerSuffix},
		NotBefore: now.Add(-peerCertSkew), NotAfter: now.Add(peerCertLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range p.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, public, p.key)
	if err != nil {
		return nil, err
	}
	p.cert, p.made = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, now
	return p.cert, nil
}

func (p *peerTLS) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{peerALPN2, peerALPN, peerKeyALPN}, Time: p.now,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: p.pool,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.certificate() },
	}
}

// client is for a connection to the node of that name and no other.
func (p *peerTLS) client(node string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{peerALPN2, peerALPN}, Time: p.now,
		RootCAs: p.pool, ServerName: node + peerSuffix, ClientSessionCache: p.cache,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.certificate() },
	}
}

// clientForKey is for a connection that a key comes over: both sides show their
// certificates anew.
func (p *peerTLS) clientForKey(node string) *tls.Config {
	config := p.client(node)
	config.NextProtos, config.ClientSessionCache = []string{peerKeyALPN}, nil
	return config
}

// peerName is the node at the other end of a connection.
func peerName(state tls.ConnectionState) (string, error) {
	if len(state.PeerCertificates) > 0 && len(state.PeerCertificates[0].DNSNames) == 1 {
		if node, ok := strings.CutSuffix(state.PeerCertificates[0].DNSNames[0], peerSuffix); ok {
			return node, nil
		}
	}
	return "", errors.New("its certificate names no node")
}

// NewsTLS is for both sides of the connections on which nodes tell each other news
// (package news): each shows that it is a node, and who calls that it has reached
// the host it called.
func NewsTLS(secret []byte, node, host string, now func() time.Time) (*tls.Config, error) {
	p, err := newPeerTLS(secret, node, now)
	if err != nil {
		return nil, err
	}
	p.hosts = []string{host}
	c := p.server()
	c.NextProtos, c.RootCAs = []string{newsALPN}, p.pool
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.certificate() }
	return c, nil
}

package peers

import (
	"bytes"
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
	"slices"
	"strings"
	"sync"
	"time"
)

// Nodes know each other by certificates of an authority whose key each of them
// makes from a secret in their store: whoever can read the store is a node, and
// nobody else is. While the secret is replaced there are two such authorities for some
// minutes. A node that has left the store's readers with an old copy is not one any more
// when its secret has ended. Certificates live in memory only.
const (
	// Those before had lower numbers, up to version 0.1.0.
	peerALPN       = "porchlight-peer/3" // a visitor
	newsALPN       = "porchlight-news/2"
	peerSuffix     = ".peer.porchlight.internal"
	peerSecretSize = 32 // bytes, at least

	sessionsKept = 64 // of other nodes, to connect to them again with less work

	peerCertLife  = 7 * 24 * time.Hour
	peerCertRenew = 24 * time.Hour
	peerCertSkew  = time.Hour // by which nodes' clocks may differ
)

// authority is what one secret makes: the same on every node, byte for byte.
type authority struct {
	secret []byte
	cert   *x509.Certificate
	key    ed25519.PrivateKey
}

func newAuthority(secret []byte) (*authority, error) {
	if len(secret) < peerSecretSize {
		return nil, errors.New("peers: the peers' secret is too short")
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "porchlight relay peers 1", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	a := &authority{secret: secret, key: ed25519.NewKeyFromSeed(seed)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Porchlight relays"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(nil, template, template, a.key.Public(), a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("peers: the peers' authority: %w", err)
	}
	return a, nil
}

// keys make both sides' configuration of one node.
type keys struct {
	node    string
	hosts   []string // besides the node's own name, in its certificate
	secrets Secrets
	now     func() time.Time

	mu    sync.Mutex   // guards what follows
	all   []*authority // of the secrets when they were asked for last
	pool  *x509.CertPool
	cache tls.ClientSessionCache
	takes *tls.Config // of visitors from other nodes; it and cache resume what was said under these secrets alone
	news  *tls.Config // of news, either way
	cert  *tls.Certificate
	made  time.Time
	ends  int // how often an authority has ended
}

// Secrets are at least 32 bytes each, which all nodes know and nobody else. The first is
// what a node shows itself by.
type Secrets func() ([][]byte, error)

func newKeys(secrets Secrets, node string, now func() time.Time, hosts ...string) (*keys, error) {
	p := &keys{node: node, hosts: hosts, secrets: secrets, now: now}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p, p.renewed()
}

// renew goes by the secrets as they are now.
func (p *keys) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.renewed() // then nobody is known
}

// renewed is renew, with mu held.
func (p *keys) renewed() error {
	secrets, err := p.secrets()
	if err == nil && len(p.all) > 0 && slices.EqualFunc(secrets, p.all, func(s []byte, a *authority) bool { return bytes.Equal(s, a.secret) }) {
		return nil
	}
	before := p.all
	p.all, p.pool, p.cert, p.cache = nil, x509.NewCertPool(), nil, tls.NewLRUClientSessionCache(sessionsKept)
	for _, secret := range secrets {
		var a *authority
		if a, err = newAuthority(secret); err != nil {
			break
		}
		p.all = append(p.all, a)
		p.pool.AddCert(a.cert)
	}
	p.takes, p.news = p.mutual(peerALPN), p.mutual(newsALPN)
	p.news.SessionTicketsDisabled = true // a resumed one would be known by what has ended
	if slices.ContainsFunc(before, func(a *authority) bool { return !p.trusts(a.cert) }) {
		p.ends++
	}
	if err == nil && len(p.all) == 0 {
		err = errors.New("peers: the peers have no secret")
	}
	return err
}

// trusts says whether a certificate is an authority's. mu is held.
func (p *keys) trusts(cert *x509.Certificate) bool {
	return slices.ContainsFunc(p.all, func(a *authority) bool { return a.cert.Equal(cert) })
}

// certificate is this node's, made anew every day.
func (p *keys) certificate() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.renewed(); err != nil {
		return nil, err
	}
	now, by := p.now(), p.all[0]
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
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, public, by.key)
	if err != nil {
		return nil, err
	}
	p.cert, p.made = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, now
	return p.cert, nil
}

// known is of connections from whom this node knows now.
func (p *keys) known() *tls.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.renewed() // then nobody is
	return p.takes
}

// mutual is of connections, either way, to whom this node knows now. mu is held.
func (p *keys) mutual(protocol string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, Time: p.now,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: p.pool, RootCAs: p.pool,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.certificate() },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.certificate() },
	}
}

// client is for a connection to the node of that name and no other.
func (p *keys) client(node string) *tls.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.renewed() // then nobody is known
	c := p.mutual(peerALPN)
	c.ServerName, c.ClientSessionCache = node+peerSuffix, p.cache
	return c
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
// the host it called. It is to be asked again and again: another configuration is for new
// connections, and where over has risen those of before must end.
func NewsTLS(secrets Secrets, node, host string, now func() time.Time) (func() (mutual *tls.Config, generation int), error) {
	p, err := newKeys(secrets, node, now, host)
	if err != nil {
		return nil, err
	}
	return func() (*tls.Config, int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.renewed() // then nobody is known
		return p.news, p.ends
	}, nil
}

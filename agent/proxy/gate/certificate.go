package gate

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"slices"

	"porchlight/agent/proxy/limits"
)

// Certificates of visitors. They are asked for in the handshake, over TLS 1.3 alone: before
// it, whoever carries the bytes reads a certificate. One that is no good ends no handshake,
// for whoever has it may sign in instead; whose a good one is, the handler asks at each
// request.

// askCertificates has visitors of the names for which asks says so be asked.
func askCertificates(conf *tls.Config, asks func(serverName string) *x509.CertPool) {
	if asks == nil {
		return
	}
	conf.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		gather, ok := hello.Conn.(*gatherConn)
		if !ok || gather.conn == nil || !slices.Contains(hello.SupportedVersions, tls.VersionTLS13) {
			return nil, nil
		}
		authority := asks(hello.ServerName)
		if authority == nil {
			return nil, nil
		}
		gather.most = limits.Certificate // what is shown is kept as long as the connection
		asking := conf.Clone()
		asking.GetConfigForClient = nil
		asking.ClientAuth, asking.ClientCAs = tls.RequestClientCert, authority
		asking.VerifyConnection = func(cs tls.ConnectionState) error { // of resumed sessions, too
			gather.conn.certificate = judge(cs, authority)
			return nil
		}
		return asking, nil
	}
}

// judge is the digest of the certificate that was shown, where the authority signed it by
// itself, for such a purpose and for now; nil for any other.
func judge(cs tls.ConnectionState, authority *x509.CertPool) *[sha256.Size]byte {
	if len(cs.PeerCertificates) == 0 {
		return nil
	}
	leaf := cs.PeerCertificates[0]
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: authority, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil || len(chains) == 0 || leaf.IsCA {
		return nil
	}
	digest := sha256.Sum256(leaf.Raw)
	return &digest
}

// Certificate is the digest of the certificate that was shown on the connection, where it is
// a good one of those that were asked for; nil for none.
func (c *Conn) Certificate() *[sha256.Size]byte {
	if c == nil {
		return nil
	}
	return c.certificate
}

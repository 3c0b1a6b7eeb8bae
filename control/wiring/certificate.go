package wiring

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"time"

	"porchlight/control"
)

// lookWait bounds a look at a certificate.
const lookWait = 3 * time.Second

// certificateOf is what a computer shows a visitor who comes by this node's relay, at self: the
// relay passes it on and does not know it. It is nothing where no computer answers.
func certificateOf(ctx context.Context, self, host string, rootPEM []byte, now time.Time) *control.Certificate {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true}} // it is looked at, and nothing is said
	conn, err := dialer.DialContext(ctx, "tcp", reachable(self))
	if err != nil {
		return nil
	}
	defer conn.Close()
	chain := conn.(*tls.Conn).ConnectionState().PeerCertificates
	leaf := chain[0] // a server without one does not get so far
	out := &control.Certificate{Issuer: cmp.Or(leaf.Issuer.CommonName, leaf.Issuer.String()), From: leaf.NotBefore.UTC(), Ends: leaf.NotAfter.UTC()}
	opts := x509.VerifyOptions{DNSName: host, Intermediates: x509.NewCertPool(), CurrentTime: now}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	if rootPEM != nil {
		opts.Roots = x509.NewCertPool()
		opts.Roots.AppendCertsFromPEM(rootPEM)
	}
	if _, err := leaf.Verify(opts); err != nil {
		out.Problem = err.Error()
	}
	return out
}

// reachable is an address to connect to, of one to listen on.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return address
}

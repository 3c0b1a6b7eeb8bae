package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"porchlight/test/pebble"
	"porchlight/test/programs"
)

// TestOneCertificateForAllApps: once the control plane answers DNS, a computer has one
// certificate for all its names by a challenge that its control plane publishes, and moves to
// it and back while somebody is there. No other name reaches the authority then, and a
// connection for one app opens no other.
func TestOneCertificateForAllApps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	listen := w.control.Listens[0]
	_, portText, _ := net.SplitHostPort(listen)
	authority := pebble.Start(t)
	authority.LookAt(programs.Got(strconv.Atoi(portText))(t))
	f := programs.Got(os.OpenFile(w.caFile, os.O_APPEND|os.O_WRONLY, 0))(t)
	programs.Got(f.Write(authority.Own))(t)
	f.Close()
	w.startAgent("--control", w.control.AuthURL, "--ca", w.caFile, "--acme-directory", authority.Directory)
	account := w.connect("cellar")
	root := hostOnly(account.Host)
	w.publish()
	w.porchlight("approve", "notes")
	own := w.handshake(t, authority, "notes."+account.Host).PeerCertificates[0]
	if len(own.DNSNames) != 1 {
		t.Fatalf("without a DNS of its own the certificate is for %v", own.DNSNames)
	}
	w.doctorSays("everybody can read its name")

	// The control plane begins to answer DNS. Somebody who comes every moment is let in.
	came := comes(t, listen, authority, "notes."+account.Host)
	w.restartControl(listen, "--dns", "127.0.0.1:0", "--dns-zone", "porch.localhost", "--public-address", "127.0.0.1")
	authority.AskForTexts(w.control.DNS)
	common := w.awaitCertificate(t, authority, "notes."+account.Host, func(leaf *x509.Certificate) bool { return len(leaf.DNSNames) == 2 })
	if !slices.Contains(common.DNSNames, root) || !slices.Contains(common.DNSNames, "*."+root) {
		t.Errorf("the certificate is for %v", common.DNSNames)
	}
	before := authority.Orders()
	w.porchlight("publish", "wiki", "--label", "Wiki", "--port", w.app.URL[strings.LastIndexByte(w.app.URL, ':')+1:])
	w.porchlight("approve", "wiki")
	if leaf := w.handshake(t, authority, "wiki."+account.Host).PeerCertificates[0]; !leaf.Equal(common) || authority.Orders() != before {
		t.Errorf("another app has the certificate %v, after %d more orders", leaf.DNSNames, authority.Orders()-before)
	}
	w.doctorSays("no app's name")
	if kept, _ := filepath.Glob(w.path("data/acme/certificates/*/wiki*")); len(kept) != 0 {
		t.Errorf("a certificate of the app alone is kept: %v", kept)
	}
	if left := programs.Got(lookUpTexts(t, w.control.DNS, "_acme-challenge."+root))(t); len(left) != 0 {
		t.Errorf("challenges are left: %v", left)
	}

	// Browsers use a connection for every name of its certificate. That is 421, by either
	// protocol, whoever asks.
	for _, protocol := range []string{"h2", "http/1.1"} {
		for host, want := range map[string]int{"notes." + account.Host: http.StatusUnauthorized, "wiki." + account.Host: http.StatusMisdirectedRequest, account.Host: http.StatusMisdirectedRequest} {
			if got := w.asksOn(t, authority, protocol, "notes."+account.Host, host); got != want {
				t.Errorf("%s: a connection for notes that asks for %s is answered %d", protocol, host, got)
			}
		}
	}

	roots := w.path("public.pem")
	programs.Must(t, os.WriteFile(roots, authority.Root, 0o600))
	w.browsersMixHosts(t, roots)

	// The DNS goes away again: nobody notices, and no name is told to the authority.
	w.restartControl(listen)
	w.awaitCertificate(t, authority, "wiki."+account.Host, func(leaf *x509.Certificate) bool { return leaf.Equal(common) })
	if turned := came(); turned != 0 {
		t.Errorf("somebody was shown a certificate that is not good %d times", turned)
	}
	if got := authority.Orders(); got != before {
		t.Errorf("%d more certificates were ordered", got-before)
	}
}

// doctorSays waits until doctor says something.
func (w *world) doctorSays(says string) {
	w.t.Helper()
	programs.Eventually(w.t, "doctor says that "+says, func() bool {
		_, out, _ := w.run("doctor")
		return strings.Contains(out, says)
	})
}

// restartControl starts the control plane anew, with other flags.
func (w *world) restartControl(listen string, flags ...string) {
	w.t.Helper()
	w.control.Stop()
	w.flags = flags
	w.startControl(listen)
}

// comes has somebody open a name every moment until the returned function is called, which says
// how often the relay brought them and the certificate was not good. The relay is away for a
// moment itself: that does not count.
func comes(t *testing.T, listen string, a *pebble.Authority, host string) (turned func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	count := make(chan int, 1)
	go func() {
		bad := 0
		for ctx.Err() == nil {
			dialer := &tls.Dialer{Config: &tls.Config{ServerName: hostOnly(host), RootCAs: a.Roots}}
			conn, err := dialer.DialContext(ctx, "tcp", listen)
			if err == nil {
				conn.Close()
			} else if strings.Contains(err.Error(), "x509") || strings.Contains(err.Error(), "internal error") {
				bad++
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
		count <- bad
	}()
	t.Cleanup(cancel)
	return func() int { cancel(); return <-count }
}

// awaitCertificate waits until a name is served with a certificate that is as it should be.
func (w *world) awaitCertificate(t *testing.T, a *pebble.Authority, host string, good func(*x509.Certificate) bool) (leaf *x509.Certificate) {
	t.Helper()
	programs.Eventually(t, host+" has the certificate", func() bool {
		leaf = w.handshake(t, a, host).PeerCertificates[0]
		return good(leaf)
	})
	return leaf
}

// asksOn asks for one host on a connection for another.
func (w *world) asksOn(t *testing.T, a *pebble.Authority, protocol, name, host string) int {
	t.Helper()
	transport := &http.Transport{
		ForceAttemptHTTP2: protocol == "h2",
		TLSClientConfig:   &tls.Config{ServerName: hostOnly(name), RootCAs: a.Roots, NextProtos: []string{protocol}},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", w.control.Listens[0])
		},
	}
	defer transport.CloseIdleConnections()
	req := programs.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+name+"/", nil))(t)
	req.Host = host
	res := programs.Got(transport.RoundTrip(req))(t)
	res.Body.Close()
	if want := map[string]int{"h2": 2, "http/1.1": 1}[protocol]; res.ProtoMajor != want {
		t.Fatalf("asked by %s it is answered by %s", protocol, res.Proto)
	}
	return res.StatusCode
}

func lookUpTexts(t *testing.T, server, name string) ([]string, error) {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server)
	}}
	texts, err := resolver.LookupTXT(t.Context(), name+".")
	if none, ok := err.(*net.DNSError); ok && none.IsNotFound {
		return nil, nil
	}
	return texts, err
}

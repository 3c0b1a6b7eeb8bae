package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"porchlight/agent/certs"
	"porchlight/test/visitor"
)

// authority is Pebble, an ACME authority for tests: it makes sure of a name by
// connecting to port of this computer.
type authority struct {
	directory string
	own       []byte         // PEM: certificate of the directory itself
	root      []byte         // PEM: of the certificates it issues
	roots     *x509.CertPool // the same
}

func newAuthority(t *testing.T, port int) *authority {
	t.Helper()
	resolver := everyNameIsHere(t)
	quiet := log.New(io.Discard, "", 0)
	store := db.NewMemoryStore()
	issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "the only one"}})
	validator := va.New(quiet, 1, port, true, resolver, store)
	front := wfe.New(quiet, store, validator, issuer, []string{"pebble.test"}, true, false, 1, 1)
	server := httptest.NewTLSServer(front.Handler())
	t.Cleanup(server.Close)
	a := &authority{directory: server.URL + wfe.DirectoryPath, roots: x509.NewCertPool()}
	a.own = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	a.root = issuer.GetRootCert(0).PEM()
	a.roots.AppendCertsFromPEM(a.root)
	return a
}

// everyNameIsHere answers that every name is 127.0.0.1.
func everyNameIsHere(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		for _, question := range q.Question {
			if question.Qtype == dns.TypeA {
				m.Answer = append(m.Answer, &dns.A{
					Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1},
					A:   net.IPv4(127, 0, 0, 1),
				})
			}
		}
		_ = w.WriteMsg(m)
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown(); l.Close(); <-ended })
	return l.Addr().String()
}

// TestCertificatesAreOrdered: a connected computer has a certificate issued for
// each of its live names by an authority that comes through relay and tunnel to
// see it (RFC 8737), and for no other name; after a restart it has them still.
func TestCertificatesAreOrdered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, portText, _ := net.SplitHostPort(w.listen)
	port, err := strconv.Atoi(portText)
	if err != nil {
		t.Fatal(err)
	}
	pebble := newAuthority(t, port)
	f, err := os.OpenFile(w.caFile, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(pebble.own); err != nil {
		t.Fatal(err)
	}
	f.Close()

	agent := w.startAgent("--control", w.authURL, "--ca", w.caFile, "--acme-directory", pebble.directory)
	account := w.connect("cellar")
	w.publish()
	w.porchlight("approve", "notes")
	notes := w.handshake(t, pebble, "notes."+account.Host)
	w.handshake(t, pebble, account.Host)
	if leaf := notes.PeerCertificates[0]; len(leaf.DNSNames) != 1 {
		t.Errorf("the certificate is for %v", leaf.DNSNames)
	}

	trusted := w.roots.Clone()
	trusted.AppendCertsFromPEM(pebble.root)
	browser := visitor.New(trusted)
	defer browser.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	page, err := browser.SignIn(ctx, "https://notes."+account.Host, owner, w.mailed(w.mails()))
	if err != nil || page.Status != http.StatusOK || page.Body != "notes of "+owner {
		t.Fatalf("the visit ended with %+v, %v", page, err)
	}

	// Nobody who asks for a name makes this computer order a certificate.
	conn, err := tls.Dial("tcp", w.listen, &tls.Config{ServerName: "other." + hostOnly(account.Host), RootCAs: pebble.roots})
	if err == nil {
		conn.Close()
		t.Error("a name that is no app's has a certificate")
	}
	ordered, _ := filepath.Glob(w.path("data/acme/certificates/*/*"))
	for _, dir := range ordered {
		if name := filepath.Base(dir); name != hostOnly(account.Host) && name != "notes."+hostOnly(account.Host) {
			t.Errorf("a certificate of %s was ordered", name)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
	if len(ordered) != 2 {
		t.Errorf("the certificates kept are %v", ordered)
	}

	// What doctor advises to publish names the account at this very authority.
	if at := certs.AccountURL(w.path("data/acme"), pebble.directory); !strings.HasPrefix(at, strings.TrimSuffix(pebble.directory, wfe.DirectoryPath)+"/") {
		t.Errorf("the account is at %q, and the authority at %s", at, pebble.directory)
	}
	if at := certs.AccountURL(w.path("data/acme"), ""); at != "" {
		t.Errorf("an account at an authority that was never asked: %q", at)
	}

	if code := agent.stop(); code != 0 {
		t.Errorf("the agent ended with %d", code)
	}
	w.startAgent("--control", w.authURL, "--ca", w.caFile)
	again := w.handshake(t, pebble, "notes."+account.Host)
	if !again.PeerCertificates[0].Equal(notes.PeerCertificates[0]) {
		t.Error("the certificate was ordered anew after a restart")
	}
}

func hostOnly(host string) string {
	name, _, _ := net.SplitHostPort(host)
	return name
}

// handshake waits until a name answers with a certificate of the authority.
func (w *world) handshake(t *testing.T, a *authority, host string) tls.ConnectionState {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		dialer := &net.Dialer{Timeout: 30 * time.Second}
		conn, err := tls.DialWithDialer(dialer, "tcp", w.listen, &tls.Config{ServerName: hostOnly(host), RootCAs: a.roots})
		if err == nil {
			defer conn.Close()
			return conn.ConnectionState()
		}
		if time.Now().After(deadline) || strings.Contains(err.Error(), "x509") {
			t.Fatalf("%s: %v", host, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

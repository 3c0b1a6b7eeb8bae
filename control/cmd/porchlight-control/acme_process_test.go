package main

import (
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
	"sync"
	"testing"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
)

// authority is Pebble, an ACME authority for tests. It makes sure of any name by
// connecting to a port of this machine, which it is told later: whoever asks
// before waits.
type authority struct {
	directory string
	trust     string // file with the certificate of the directory itself
	looksAt   func(port int)

	roots chan *x509.CertPool // one: of what it issues, once it knows the port
}

func startAuthority(t *testing.T) *authority {
	t.Helper()
	resolver := startResolver(t)
	a := &authority{trust: filepath.Join(t.TempDir(), "pebble.pem"), roots: make(chan *x509.CertPool, 1)}
	known := make(chan struct{})
	var front http.Handler // set before known is closed
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-known:
			front.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	a.directory = server.URL + wfe.DirectoryPath
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(a.trust, own, 0o600); err != nil {
		t.Fatal(err)
	}
	a.looksAt = func(port int) {
		quiet := log.New(io.Discard, "", 0)
		store := db.NewMemoryStore()
		issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "the only one"}})
		web := wfe.New(quiet, store, va.New(quiet, 1, port, true, resolver, store), issuer, []string{"pebble.test"}, true, false, 1, 1)
		front = web.Handler()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(issuer.GetRootCert(0).PEM())
		a.roots <- roots
		close(known)
	}
	return a
}

// startResolver answers that every name is this machine.
func startResolver(t *testing.T) (addr string) {
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
					Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(127, 0, 0, 1),
				})
			}
		}
		_ = w.WriteMsg(m) // whoever asked may be gone
	})}
	started := make(chan struct{})
	server.NotifyStartedFunc = sync.OnceFunc(func() { close(started) })
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.ActivateAndServe() }() // it ends by Shutdown
	<-started
	t.Cleanup(func() { _ = server.Shutdown(); l.Close(); <-ended })
	return l.Addr().String()
}

// With --tls acme the auth host has a certificate of an authority, which came to
// the relay's own listener to make sure of it; after a restart it has it still,
// without asking again.
func TestACME(t *testing.T) {
	t.Parallel()
	a := startAuthority(t)
	dir := t.TempDir()
	serve := func(directory string) *server {
		return startWith(t, []string{"SSL_CERT_FILE=" + a.trust}, "--data", dir, "--tls", "acme", "--acme-directory", directory)
	}
	s := serve(a.directory)
	ready := func() (int, string) { return fetch(t, probe(t), s.metrics+"/readyz") }
	if status, text := ready(); status != http.StatusServiceUnavailable || !strings.Contains(text, "certificate") {
		t.Errorf("without a certificate: %d %s", status, text)
	}
	_, text, _ := net.SplitHostPort(s.addr)
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	a.looksAt(port)
	roots := <-a.roots
	certificate := func(s *server) (serial string) {
		t.Helper()
		eventually(t, "a certificate", func() bool {
			conn, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: "control.porch.test", RootCAs: roots})
			if err != nil {
				return false
			}
			defer conn.Close()
			leaf := conn.ConnectionState().PeerCertificates[0]
			if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != "control.porch.test" {
				t.Errorf("the certificate is for %v", leaf.DNSNames)
			}
			serial = leaf.SerialNumber.String()
			return true
		})
		return serial
	}
	first := certificate(s)
	eventually(t, "readiness", func() bool { status, _ := ready(); return status == http.StatusOK })
	for _, name := range []string{"notes.maya.porch.test", "elsewhere.test"} {
		if conn, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: name, RootCAs: roots}); err == nil {
			conn.Close()
			t.Errorf("%s has a certificate here", name)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "acme")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the directory: %v %v", info, err)
	}
	s.stop()
	if code, _, err := invoke(t, nil, "ca", "--data", dir); code != exitRefused || !strings.Contains(err, "no certificate authority") {
		t.Errorf("ca: exit %d, %s", code, err)
	}

	s = serve(a.directory)
	if again := certificate(s); again != first {
		t.Error("another certificate was ordered")
	}
	s.stop()
}
